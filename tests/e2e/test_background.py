"""Compilation behind the calls: torch answers until the code is there."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magweld import api, tiers
from magweld.comparison import CALLS
from magweld.frontend import trace


class Compiler:
    """The compiler, held up until it may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.error: Exception | None = None
        self.calls = 0
        self._compile = api.compile_imported

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        assert self.may_go_on.wait(120)
        if self.error is not None:
            raise self.error
        return self._compile(*args, **kwargs)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    held = Compiler()
    monkeypatch.setattr(api, "compile_imported", held)
    yield held
    held.may_go_on.set()


def program(x: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(x * 2 + bias, -1).sum(0)


def test_hits_before_and_after(compiler: Compiler) -> None:
    fast = trace(program, compile="background")
    for number in range(8):
        x, bias = torch.randn(5, 7), torch.randn(7)
        torch.testing.assert_close(fast(x, bias), program(x, bias))
        stats = fast.stats()
        assert stats["pending"] == (number < 5)
        assert stats["torch_hits"] == min(number, 5 - 1)
        assert stats["compilations"] == (number >= 5)
        if number == 3:
            assert "torch runs it meanwhile" in fast.explain()
            assert not fast.wait(0)
        if number == 4:
            compiler.may_go_on.set()
            assert fast.wait()
            assert fast.stats()["pending"] == 0
            # What runs hits now has nothing around it.
            assert isinstance(fast.records[0].compiled, api.CompiledGraph)
            break
    for _ in range(3):
        x, bias = torch.randn(5, 7), torch.randn(7)
        torch.testing.assert_close(fast(x, bias), program(x, bias))
    assert fast.stats()["torch_hits"] == 4
    assert fast.stats()["compile_seconds"] > 0
    assert "linalg" in fast.records[0].mlir("linalg")


def test_a_failure_is_told_at_the_next_call(compiler: Compiler) -> None:
    fast = trace(program, compile="background")
    x, bias = torch.randn(5, 7), torch.randn(7)
    fast(x, bias)
    compiler.error = RuntimeError("worker lost")
    compiler.may_go_on.set()
    with pytest.warns(UserWarning, match="backend-failed: magweld raised RuntimeError"):
        fast.wait()
    for _ in range(3):
        torch.testing.assert_close(fast(x, bias), program(x, bias))
    (record,) = fast.records
    assert "worker lost" in str(record.breaks[0])
    assert fast.stats()["torch_hits"] == 3
    assert fast.stats()["compilations"] == 0


def test_each_further_size(compiler: Compiler) -> None:
    fast = trace(program, compile="background", dynamic={"x": True})
    compiler.may_go_on.set()
    sizes = (3, 4, 5)
    for turn in range(11):
        for size in sizes:
            x, bias = torch.randn(size, 7), torch.randn(7)
            torch.testing.assert_close(fast(x, bias), program(x, bias))
        if turn == 1:
            fast.wait()  # the sizes are known; the next call leaves the record
        if turn == 6:
            fast.wait()  # it sums over what changes: no program is for all sizes
        if turn == 8:
            fast.wait()
            before = fast.stats()["torch_hits"]
    stats = fast.stats()
    assert stats["pending"] == 0
    assert stats["compilations"] >= len(sizes)
    # Behind the wait compiled forms answer all.
    assert stats["torch_hits"] == before


@pytest.mark.parametrize("compiled_from", [1, 3])
def test_training(compiler: Compiler, compiled_from: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 2))
    fast = trace(model, compile="background")
    for number in range(6):
        if number == compiled_from:
            compiler.may_go_on.set()
            fast.wait()
        if number > compiled_from + 1:
            fast.wait()  # for the backward half
        x, found = torch.randn(3, 6), []
        for run in (fast, model):
            torch.manual_seed(number)
            model.zero_grad()
            loss = F.mse_loss(run(x), torch.ones(3, 2))
            loss.backward()
            grads = [p.grad.clone() for p in model.parameters()]
            # Draws behind the call are those of eager, too.
            found.append([loss, *grads, torch.rand(2)])
        torch.testing.assert_close(*found)
    assert fast.stats()["pending"] == 0
    assert fast.stats()["torch_hits"] == compiled_from - 1


def test_control_flow_is_compiled_in_pieces(compiler: Compiler) -> None:
    def branch(x: Tensor) -> Tensor:
        y = torch.softmax(x * 2, -1).exp() + 1
        if y.sum() > 0:
            y = torch.softmax(y * 3, -1).sin()
        else:
            y = (y - 1).cos().tanh()
        return y

    fast = trace(branch, compile="background")
    for number in range(6):
        if number == 3:
            compiler.may_go_on.set()
            fast.wait()
        x = torch.randn(4, 5) * (-1) ** number
        torch.testing.assert_close(fast(x), branch(x))
    assert fast.stats()["hits"] == 5
    assert fast.stats()["pending"] == 0


def test_effects_happen_once_in_each_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGWELD_RACE", "1")
    monkeypatch.setenv("MAGWELD_CACHE", "0")

    def step(state: Tensor, log: list[int]) -> Tensor:
        state.add_(1)
        log.append(1)
        return state * torch.rand(3)

    fast = trace(step, compile="now")
    mine, theirs = (torch.zeros(3), []), (torch.zeros(3), [])
    for number in range(14):
        torch.manual_seed(number)
        got = fast(*mine)
        torch.manual_seed(number)
        torch.testing.assert_close(got, step(*theirs))
        assert torch.equal(mine[0], theirs[0])
        assert mine[1] == theirs[1]
    assert fast.stats()["hits"] + fast.stats()["eager"] == 13
    tiered = fast.records[0].tiered
    assert tiered is not None
    assert tiered.verdict is not None
    assert fast.stats()["torch_hits"] >= 2


def test_a_backward_half_that_nobody_runs_is_not_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Programs that infer with gradients would never be compared with eager runs."""
    monkeypatch.setenv("MAGWELD_RACE", "1")
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 2))
    fast = trace(model, compile="background")
    x = torch.randn(3, 6)
    fast(x)
    fast.wait()
    (record,) = fast.records
    for _ in range(2 * CALLS):
        assert fast(x).requires_grad
    assert not record.is_pending
    for _ in range(2 * CALLS):
        fast(x).sum().backward()
    assert not record.is_pending


def test_without_a_race_times_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGWELD_RACE", "1")
    torch.use_deterministic_algorithms(True)
    try:
        fast = trace(program, compile="now")
        fast(torch.ones(5, 7), torch.ones(7))
        assert isinstance(fast.records[0].compiled, api.CompiledGraph)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compile": "later"}, "compile='later': expected 'background' or 'now'"),
        ({"compile": "background", "backend": "eager"}, "is for the backends magweld"),
    ],
)
def test_wrong_values_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trace(program, **options)


def test_the_default_is_behind_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAGWELD_COMPILE")
    threads: list[Any] = []
    compile_imported = api.compile_imported

    def watched(*args: Any) -> Any:
        threads.append(threading.current_thread())
        return compile_imported(*args)

    monkeypatch.setattr(api, "compile_imported", watched)
    fast = trace(program)
    fast(torch.ones(5, 7), torch.ones(7))
    assert fast.wait()
    assert threads
    assert threading.current_thread() not in threads


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each call prepare for as short as it can."""
    monkeypatch.setattr(tiers, "_SLICE", 0.0)
    monkeypatch.setattr(tiers, "_PAUSE", 0.0)


def calls_until(fast: Any, done: Callable[[], bool], limit: int = 400) -> int:
    """Call a program until something is so; return how often that was."""
    for number in range(limit):
        if done():
            return number
        x, bias = torch.randn(5, 7), torch.randn(7)
        torch.testing.assert_close(fast(x, bias), program(x, bias))
    raise AssertionError("it never came")


def test_the_import_goes_on_in_calls(compiler: Compiler, short_slices: None) -> None:
    fast = trace(program, compile="background")
    compiler.may_go_on.set()
    x, bias = torch.randn(5, 7), torch.randn(7)
    fast(x, bias)
    gone = weakref.ref(x), weakref.ref(bias)
    del x, bias
    # The import is under way, and keeps none of the tensors.
    assert compiler.calls == 0
    assert [item() for item in gone] == [None, None]
    assert calls_until(fast, lambda: compiler.calls > 0) > 5
    fast.wait()
    calls_until(fast, lambda: fast.stats()["hits"] > fast.stats()["torch_hits"])


def test_only_what_a_call_hits_is_imported(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler.error = RuntimeError("not wanted here")
    imported: list[tuple[int, ...]] = []
    import_graph = api.import_graph

    def watched(graph: Any, inputs: Any, **options: Any) -> Any:
        imported.append(tuple(inputs[0].shape))
        return import_graph(graph, inputs, **options)

    monkeypatch.setattr(api, "import_graph", watched)
    fast = trace(program, compile="background", dynamic=False)
    for size in (5, 6, 7):
        x, bias = torch.randn(size, 7), torch.randn(7)
        torch.testing.assert_close(fast(x, bias), program(x, bias))
    # Each of these calls was observed; no other call has run its graph.
    assert imported == []
    x, bias = torch.randn(6, 7), torch.randn(7)
    torch.testing.assert_close(fast(x, bias), program(x, bias))
    assert imported == [(6, 7)]
    fast.wait(0)
    assert sorted(imported) == [(5, 7), (6, 7), (7, 7)]


def test_the_import_goes_on_in_its_own_modes_only(
    compiler: Compiler, short_slices: None
) -> None:
    fast = trace(program, compile="background")
    compiler.may_go_on.set()
    fast(torch.randn(5, 7), torch.randn(7))
    torch.set_default_dtype(torch.float64)
    try:
        assert not fast.wait()
        assert compiler.calls == 0
    finally:
        torch.set_default_dtype(torch.float32)
    assert fast.wait()
    assert compiler.calls == 1


def test_what_cannot_be_imported_is_told_later(short_slices: None) -> None:
    def numbers(x: Tensor) -> Tensor:
        y = (x * 2 + 1).exp()
        return torch.fft.fft(y).conj()

    fast = trace(numbers, compile="background")
    x = torch.randn(8)
    found = []
    with pytest.warns(UserWarning, match="backend-failed"):
        found.extend(fast(x) for _ in range(60))
    for result in found:
        torch.testing.assert_close(result, numbers(x))
    assert fast.stats()["pending"] == 0
    assert fast.stats()["hits"] == fast.stats()["torch_hits"] == 59
    assert "backend-failed" in [item.id for item in fast.records[0].breaks]


def test_draws_are_eagers_while_the_import_goes_on(short_slices: None) -> None:
    def noisy(x: Tensor) -> Tensor:
        return F.dropout(x * torch.rand_like(x), 0.5) + torch.randn(3)

    fast = trace(noisy, compile="background")
    for number in range(40):
        x, found = torch.randn(3), []
        for run in (fast, noisy):
            torch.manual_seed(number)
            found.append((run(x), torch.rand(2)))
        torch.testing.assert_close(*found)
