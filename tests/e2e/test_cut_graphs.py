"""Graphs with operators that only torch runs: what lies between them is compiled."""

from __future__ import annotations

import copy
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magweld.cut_graph import CutGraph
from magweld.frontend import trace

Program = Callable[..., Any]
CALLS = 5


def before(x: Tensor) -> Tensor:
    return (torch.softmax(x * 2, -1) + 1).exp()


def after(x: Tensor) -> Tensor:
    return torch.tanh(x * 3 - 1).sigmoid()


@pytest.fixture
def custom() -> Iterator[Any]:
    """An operator of a user, without a form for tensors without data."""
    calls: list[int] = []
    library = torch.library.Library("magweld_test", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.define("add_one_(Tensor(a!) x) -> ()")

    def twice(x: Tensor) -> Tensor:
        calls.append(1)
        if bool(x.isnan().any()):
            raise ValueError("not a number")
        return x * 2

    def add_one_(x: Tensor) -> None:
        calls.append(1)
        x.add_(1)

    library.impl("twice", twice, "CPU")
    library.impl("add_one_", add_one_, "CPU")
    yield SimpleNamespace(
        twice=torch.ops.magweld_test.twice,
        add_one_=torch.ops.magweld_test.add_one_,
        calls=calls,
    )
    library._destroy()


def compare(
    program: Program, make: Callable[[int], tuple[Any, ...]], **options: Any
) -> Any:
    """Compare calls with eager ones; return the traced program."""
    fast = trace(program, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for number in range(CALLS):
            torch.manual_seed(number)
            mine = make(number)
            theirs = copy.deepcopy(mine)
            results = []
            for run, given in ((fast, mine), (program, theirs)):
                torch.manual_seed(number)
                with torch.no_grad():
                    results.append((run(*given), torch.rand(2)))
            torch.testing.assert_close(*results)
            torch.testing.assert_close(mine, theirs)
    # No operator raises: what a graph raised would be a mistake of ours.
    assert not [item for item in fast.breaks if item.id == "backend-failed"]
    return fast


def pieces(fast: Any) -> int:
    """Return how many compiled pieces the only record has."""
    (record,) = fast.records
    compiled = record.compiled
    assert isinstance(compiled, CutGraph)
    groups = compiled.report()["groups"]
    assert bool(groups) == (compiled.held_bytes > 0)
    return int(compiled.report()["pieces"])


def random(*shape: int) -> Callable[[int], tuple[Tensor, ...]]:
    return lambda number: (torch.randn(*shape),)


def test_an_operator_without_shapes(custom: Any) -> None:
    def program(x: Tensor) -> Tensor:
        return after(custom.twice(before(x)) + 1)

    fast = compare(program, random(4, 8))
    assert pieces(fast) == 2
    assert fast.stats()["hits"] == CALLS - 1
    # Nothing runs it but the calls, one of each pair ours.
    assert len(custom.calls) == 2 * CALLS
    assert "left to torch: node 'twice'" in fast.explain()
    assert "graph-not-runnable" in fast.explain()


def test_every_call_of_a_refused_operator_is_cut_out(custom: Any) -> None:
    def program(x: Tensor) -> Tensor:
        for _ in range(4):
            x = after(custom.twice(before(x)))
        return x

    assert pieces(compare(program, random(4, 8))) == 5


def test_what_raises_raises(custom: Any) -> None:
    def program(x: Tensor, log: list[int], state: Tensor) -> Tensor:
        state.add_(1)
        log.append(1)
        y = custom.twice(before(x))
        state.mul_(2)
        return after(y)

    fast = trace(program)
    states = (torch.ones(3), [], torch.ones(3), [])
    for number in range(6):
        x = torch.randn(4, 8)
        if number >= 4:
            x[0] = torch.nan
        raised = []
        for run, state, log in ((fast, *states[:2]), (program, *states[2:])):
            try:
                run(x, log, state)
                raised.append("")
            except ValueError as error:
                raised.append(str(error))
        assert raised[0] == raised[1] == ("not a number" if number >= 4 else "")
        assert torch.equal(states[0], states[2])
        assert states[1] == states[3]


def test_views_across_a_cut(custom: Any) -> None:
    def program(x: Tensor, buffer: Tensor) -> tuple[Tensor, ...]:
        y = before(x)
        row, part = y[1], buffer[:2]
        custom.add_one_(row)
        custom.add_one_(part)
        y.mul_(2)
        buffer.sub_(0.5)
        z = after(y) + row.sum()
        return z, row, y, part, buffer

    def make(number: int) -> tuple[Tensor, ...]:
        return torch.randn(4, 8), torch.randn(4, 8)

    fast = compare(program, make)
    assert pieces(fast) >= 1
    with torch.no_grad():
        x, buffer = make(0)
        _, row, y, part, same = fast(x, buffer)
    assert same is buffer
    assert part._base is buffer or part.data_ptr() == buffer.data_ptr()
    assert row.data_ptr() == y[1].data_ptr()


def test_aliased_inputs_of_a_piece(custom: Any) -> None:
    def program(x: Tensor, number: int) -> Tensor:
        y = before(x)
        z = custom.twice(y)
        if number:
            z = y
        z.add_(1)
        return after(y * z + z)

    for number in (0, 1):
        compare(program, lambda _, number=number: (torch.randn(4, 8), number))


def test_shapes_that_follow_from_values() -> None:
    def program(x: Tensor, threshold: Tensor) -> tuple[Tensor, ...]:
        scores = before(x)
        kept = (scores.sum(-1) > threshold).nonzero()[:, 0]
        chosen = scores[kept]
        return after(scores), after(chosen), kept, chosen.amax(-1)

    def make(number: int) -> tuple[Tensor, ...]:
        x = torch.randn(16, 8)
        return x, before(x).sum(-1).median()

    fast = compare(program, make)
    assert pieces(fast) >= 1
    assert "dynamic-shape" in fast.explain()


def test_other_shapes_each_time() -> None:
    def program(x: Tensor) -> Tensor:
        y = before(x)
        return after(y[y > 3]).sum() + after(y).sum()

    compare(program, random(16, 8))


def test_inverse_spectrum() -> None:
    window = torch.hann_window(64)

    def program(wave: Tensor) -> Tensor:
        found = torch.stft(wave, 64, 16, window=window, return_complex=True)
        mask = torch.sigmoid(found.abs().log1p() * 3 - 1)
        return torch.istft(found * mask, 64, 16, window=window)

    assert pieces(compare(program, random(2, 800))) == 1


def test_double_precision_complex_numbers() -> None:
    def program(x: Tensor) -> Tensor:
        y = before(x).double()
        z = torch.fft.fft(y)
        return after((z * z.conj()).real.float())

    fast = compare(program, random(4, 8))
    assert pieces(fast) == 2
    assert "tensor-dtype" in fast.explain()


def test_sparse_tensors() -> None:
    def program(x: Tensor, adjacency: Tensor) -> Tensor:
        return after(torch.sparse.mm(adjacency, before(x)) + 1)

    def make(number: int) -> tuple[Tensor, ...]:
        return torch.randn(6, 8), (torch.rand(6, 6) > 0.5).float().to_sparse_csr()

    fast = trace(program)
    for number in range(CALLS):
        x, adjacency = make(number)
        with torch.no_grad():
            torch.testing.assert_close(fast(x, adjacency), program(x, adjacency))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_regions(dtype: torch.dtype) -> None:
    layer = nn.Linear(8, 8)

    def program(x: Tensor) -> tuple[Tensor, bool]:
        y = before(x)
        with torch.autocast("cpu", dtype):
            z = F.gelu(layer(y))
        return after(z.float() + y), torch.is_autocast_enabled("cpu")

    fast = compare(program, random(4, 8))
    assert pieces(fast) == 2
    assert not torch.is_autocast_enabled("cpu")
    assert "autocast-region" in fast.explain()


def test_draws_keep_their_order(custom: Any) -> None:
    def program(x: Tensor) -> Tensor:
        x = before(x) * torch.rand_like(x)
        x = custom.twice(x) * torch.rand(8)
        return after(F.dropout(x, 0.5)) + torch.randn(8)

    compare(program, random(4, 8))


def test_changing_sizes(custom: Any) -> None:
    def program(x: Tensor, scale: float) -> Tensor:
        return after(custom.twice(before(x)) * scale)

    fast = compare(
        program,
        lambda number: (torch.randn(2 + number % 3, 8), 1.5 * number),
        dynamic={"x": True, "scale": True},
    )
    # Without a form for tensors without data no size is lifted, the number still is.
    for number in range(6):
        found = fast.stats()["hits"]
        x, scale = torch.randn(2 + number % 3, 8), 0.5 - number
        with torch.no_grad():
            torch.testing.assert_close(fast(x, scale), program(x, scale))
    assert fast.stats()["hits"] == found + 1
    assert any("args[1] is any float" in str(guard) for guard in fast.records[0].guards)


def test_behind_the_calls(custom: Any) -> None:
    def program(x: Tensor) -> Tensor:
        return after(custom.twice(before(x)) + 1)

    fast = trace(program, compile="background")
    for _ in range(8):
        x = torch.randn(4, 8)
        torch.testing.assert_close(fast(x), program(x))
        assert fast.wait()
    assert fast.stats()["hits"] == 7
    (record,) = fast.records
    assert len(record.inspectable.report()["groups"]) > 0


def test_values_go_when_nothing_reads_them(custom: Any) -> None:
    alive: list[int] = []
    seen: list[weakref.ref[Tensor]] = []
    twice = custom.twice

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            result = func(*args, **(kwargs or {}))
            if func is torch.ops.magweld_test.twice.default:
                alive.append(sum(ref() is not None for ref in seen))
                seen.append(weakref.ref(result))
            return result

    def program(x: Tensor) -> Tensor:
        for _ in range(6):
            x = after(twice(before(x)))
        return x

    fast = trace(program)
    for _ in range(CALLS):
        fast(torch.randn(4, 8))
    graph = fast.records[0].compiled
    assert isinstance(graph, CutGraph)
    with Watch(), torch.no_grad():
        graph(torch.randn(4, 8))
    # The result before is read by the piece between, and then nobody's.
    assert alive == [0] * 6


def test_few_operators_are_left_to_torch_as_a_whole(custom: Any) -> None:
    fast = trace(lambda x: custom.twice(x + 1) * 2)
    with pytest.warns(UserWarning, match="graph-not-runnable"):
        fast(torch.randn(3))
    x = torch.randn(3)
    torch.testing.assert_close(fast(x), (x + 1) * 4)


def test_training_is_left_to_torch(custom: Any) -> None:
    layer = nn.Linear(8, 8)

    def program(x: Tensor) -> Tensor:
        y = before(layer(x))
        kept = y[y > y.mean()]
        return after(kept).sum()

    fast = trace(program)
    for _ in range(3):
        x, grads = torch.randn(4, 8), []
        for run in (fast, program):
            layer.zero_grad()
            run(x).backward()
            grads.append(layer.weight.grad.clone())
        torch.testing.assert_close(*grads)
