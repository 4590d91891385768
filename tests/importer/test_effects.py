"""Writes, aliases, random numbers and errors: what a call shows beside its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from magweld.importer.importer import import_graph


def tensor(*shape: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float32) / 7 - 1).reshape(shape)


def add_through_view(x: torch.Tensor) -> Any:
    x.view(-1)[3:7].add_(1)
    return x * 2


def write_rows(x: torch.Tensor, y: torch.Tensor) -> Any:
    x[1] = y
    x[:, 2:4] *= 3
    return x.sum()


def swap(x: torch.Tensor, y: torch.Tensor) -> Any:
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return x + y


def swap_scaled(x: torch.Tensor, y: torch.Tensor) -> Any:
    old = x * 1
    x.copy_(y * 1)
    y.copy_(old)
    return x + y


def view_before_write(x: torch.Tensor) -> Any:
    part = x[0]
    x.mul_(2)
    return part + 1, part


def out_argument(x: torch.Tensor, y: torch.Tensor) -> Any:
    torch.add(x, 1, out=y)
    return y * 2


def in_place_chain(x: torch.Tensor) -> Any:
    h = x + 1
    h.relu_()
    h[:, 0] = 5
    h.transpose(0, 1)[1].zero_()
    return h


def masked_write(x: torch.Tensor) -> Any:
    x.masked_fill_(x > 0, -1)
    return x.clone()


def no_grad_inside(x: torch.Tensor) -> Any:
    with torch.no_grad():
        x.add_(1)
    return x * 2


def running_statistics(x: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> Any:
    return F.batch_norm(x, m, v, training=True, momentum=0.3)


def counter(x: torch.Tensor, n: torch.Tensor) -> Any:
    n.add_(1)
    return x * n


WRITES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "add": (lambda x: x.add_(1), (tensor(3, 5),)),
    "add-through-view": (add_through_view, (tensor(3, 5),)),
    "rows": (write_rows, (tensor(3, 5), tensor(5))),
    "swap": (swap, (tensor(3, 5), -tensor(3, 5))),
    "swap-scaled": (swap_scaled, (tensor(3, 5), -tensor(3, 5))),
    "view-before-write": (view_before_write, (tensor(3, 5),)),
    "out-argument": (out_argument, (tensor(3, 5), torch.zeros(3, 5))),
    "in-place-on-own": (in_place_chain, (tensor(3, 5),)),
    "masked": (masked_write, (tensor(3, 5),)),
    "no-grad-inside": (no_grad_inside, (tensor(3, 5),)),
    "permuted-input": (lambda x: x.mul_(2).sum(0), (tensor(3, 5).t(),)),
    "running-statistics": (
        running_statistics,
        (tensor(2, 3, 4, 4), torch.zeros(3), torch.ones(3)),
    ),
    "counter": (counter, (tensor(3), torch.tensor(4))),
    "only-a-write": (lambda x: x.zero_() and None, (tensor(1),)),
    "set-item-scalar": (lambda x: x.__setitem__((0, 1), 7.0), (tensor(3, 5),)),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(check: Any, name: str) -> None:
    function, inputs = WRITES[name]
    check(function, *inputs)


def storage(value: torch.Tensor) -> int:
    return value.untyped_storage().data_ptr()


ALIASES: dict[str, Callable[[torch.Tensor], Any]] = {
    "input": lambda x: (x, x + 1),
    "input-twice": lambda x: (x, x),
    "contiguous-input": lambda x: x.contiguous(),
    "view-of-input": lambda x: (x.view(-1), x[1], x.t(), x[:, ::2], x.expand(2, 4, 6)),
    "detached-input": lambda x: x.detach(),
    "view-of-written-input": lambda x: x.add_(1).view(-1)[2:],
    "copy-of-input": lambda x: (x.clone(), x.t().contiguous(), x.clone().view(-1)),
    "result-twice": lambda x: (lambda y: (y, y))(x + 1),
    "equal-results": lambda x: (x + 1, x + 1),
    "result-and-view": lambda x: (lambda y: (y, y.view(-1), y[1:]))(x + 1),
    "views-of-one-base": lambda x: tuple((x + 1).chunk(3, 1)),
    "overlapping-views": lambda x: (lambda y: (y[:3], y[1:]))(x * 2),
    "view-and-written-base": lambda x: (lambda y: (y[0].mul_(2), y))(x + 1),
    "result-and-copy": lambda x: (lambda y: (y, y.clone().view(-1)))(x + 1),
    "permuted-result": lambda x: ((x + 1).t(), (x @ x.t()).t()),
    "sliced-result": lambda x: (x + 1)[:, 1:4],
    "column-of-result": lambda x: (x + 1)[:, 2],
    "expanded-result": lambda x: (x.sum(1, keepdim=True).expand(4, 5), x[0] * 2),
    "unfolded-result": lambda x: (x[0] + 1).unfold(0, 3, 1),
    "scalars-and-none": lambda x: (x + 1, 3, None, "name", 2.5),
    "constant-result": lambda x: (torch.ones(3), torch.tensor([1, 2])),
    "times-one": lambda x: (x * 1, x + 0),
}


@pytest.mark.parametrize("name", ALIASES)
def test_aliases(check: Any, run: Any, name: str) -> None:
    function = ALIASES[name]
    check(function, tensor(4, 6))
    mine, theirs = tensor(4, 6), tensor(4, 6)
    actual = [mine, *torch.utils._pytree.tree_leaves(run(function, mine))]
    expected = [theirs, *torch.utils._pytree.tree_leaves(function(theirs))]
    for i, left in enumerate(actual):
        for j, right in enumerate(actual):
            if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
                assert (left is right) == (expected[i] is expected[j])
                shares = storage(expected[i]) == storage(expected[j])
                assert (storage(left) == storage(right)) == shares


def test_results_that_are_inputs_are_copied(record: Any) -> None:
    x = tensor(4, 6)
    imported = import_graph(record(lambda x: (x * 1, x + 1, x + 1), x), [x])
    shared = x + 1
    first, second, third = imported.finish([x], [x, shared, shared])
    assert len({storage(t) for t in (x, first, second, third)}) == 4
    assert torch.equal(first, x)


def test_writes_after_the_call_show_in_aliases(run: Any) -> None:
    x = tensor(4, 6)
    first, second = run(lambda x: (x + 1)[:, :4].chunk(2, 1), x)
    whole, row = run(lambda x: (lambda y: (y, y[1]))(x + 1), x)
    row.zero_()
    assert whole[1].eq(0).all()
    first.zero_()
    assert second.ne(0).any()


SHARED: dict[str, Callable[..., Any]] = {
    "views": lambda a, b: (a * 2, b[1:], a[:2]),
    "itself": lambda a, b: (b, a + b),
    "written": lambda a, b: (a.add_(1)[1:], b.detach()[:2]),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_view_is_one_of_its_own_input(run: Any, name: str) -> None:
    """That inputs share memory at the import tells nothing of later calls."""
    base, other = tensor(12), tensor(12)
    example = [base[:4], base[4:8]]
    for inputs in ((tensor(4), -tensor(4)), (other[6:10], other[1:5])):
        theirs = [x.clone() for x in inputs]
        found = run(SHARED[name], *inputs, example=example)
        expected = SHARED[name](*theirs)
        for mine, wanted in zip(found, expected, strict=True):
            assert torch.equal(mine, wanted)
        shows = [[mine.data_ptr() - x.data_ptr() for x in inputs] for mine in found]
        wants = [[mine.data_ptr() - x.data_ptr() for x in theirs] for mine in expected]
        close = [[abs(n) < 16 for n in row] for row in wants]
        for mine, wanted, near in zip(shows, wants, close, strict=True):
            assert [m for m, n in zip(mine, near, strict=True) if n] == [
                w for w, n in zip(wanted, near, strict=True) if n
            ]


COUNTED: dict[str, Callable[[torch.Tensor], Any]] = {
    "input": lambda x: x.add_(1),
    "detached": lambda x: x.detach().add_(1),
    "data": lambda x: x.data.add_(1),
    "view of data": lambda x: x.data[0].mul_(2),
    "both": lambda x: x.data.add_(1) + x.mul_(2),
}


@pytest.mark.parametrize("name", COUNTED)
def test_versions_count_the_writes_that_eager_counts(run: Any, name: str) -> None:
    mine, theirs = tensor(3, 4), tensor(3, 4)
    run(lambda x: (COUNTED[name](x), x * 3)[1], mine)
    COUNTED[name](theirs)
    assert torch.equal(mine, theirs)
    assert (mine._version > 0) == (theirs._version > 0)


def test_a_version_counts_no_writes_to_data(run: Any) -> None:
    for function in (lambda x: (x.data, x.detach()), lambda x: (x.data[1:], x + 1)):
        told = []
        for call in (lambda x, f=function: run(f, x), function):
            x = tensor(3, 4)
            for result in call(x):
                result.zero_()
                told.append(x._version)
        assert told[: len(told) // 2] == told[len(told) // 2 :]


RELATED: dict[str, Callable[[torch.Tensor], Any]] = {
    "result and view": lambda x: (lambda y: (y, y[1:]))(x * 2),
    "view and result": lambda x: (lambda y: (y[1:], y))(x * 2),
    "views of a result": lambda x: (lambda y: (y[1:], y[:2], y, y.t()))(x * 2),
    "views of nothing else": lambda x: (lambda y: (y[1:], y[:2]))(x * 2),
    "view of an input": lambda x: (x[1:], x * 2, x.t()),
    "result and copy": lambda x: (lambda y: (y, y.detach()))(x * 2),
}


@pytest.mark.parametrize("name", RELATED)
def test_a_write_with_gradients_reaches_what_shows_it(run: Any, name: str) -> None:
    function = RELATED[name]
    count = len(function(tensor(3, 4)))
    for written in range(count):
        told = []
        for call in (lambda x: run(function, x), function):
            x = tensor(3, 4)
            results = call(x)
            factor = torch.full((1,), 3.0, requires_grad=True)
            results[written].mul_(factor)
            told.append([t.requires_grad for t in (x, *results)])
        assert told[0] == told[1]


RANDOM: dict[str, Callable[[torch.Tensor], Any]] = {
    "rand": lambda x: x + torch.rand(4, 6),
    "randn-like": lambda x: (torch.randn_like(x), torch.randn_like(x.t())),
    "dropout": lambda x: F.dropout(x, 0.3) * 2,
    "dropout-permuted": lambda x: F.dropout(x.t(), 0.3),
    "in-place": lambda x: x.uniform_() + torch.empty(6).normal_(),
    "in-place-permuted": lambda x: x.t().normal_(),
    "order": lambda x: (torch.rand(3), F.dropout(x), torch.randn(2), x.bernoulli_()),
    "unread": lambda x: (torch.rand(3), torch.rand(2))[1],
    "alpha-dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "dropout-channels": lambda x: F.dropout1d(x, 0.3),
    "dropout-in-place": lambda x: F.dropout(x, 0.3, inplace=True),
    "randint": lambda x: torch.randint(0, 9, (4,)) + torch.randperm(4),
    "multinomial": lambda x: torch.multinomial(x.softmax(1), 2),
    "exponential": lambda x: torch.empty(5).exponential_(2.0),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_torchs(check: Any, name: str) -> None:
    check(RANDOM[name], tensor(4, 6))


def test_import_disturbs_nothing(run: Any, record: Any) -> None:
    x = tensor(4, 6).requires_grad_()
    graph = record(lambda x: F.dropout(x) + torch.rand(6), x)
    before, state = x.detach().clone(), torch.get_rng_state()
    with torch.enable_grad():
        import_graph(graph, [x])
        assert torch.is_grad_enabled()
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(before, x.detach())
    assert x._version == 0


INPUTS: dict[str, torch.Tensor] = {
    "permuted": tensor(6, 4).t(),
    "expanded": tensor(4, 1).expand(4, 6),
    "offset": tensor(8, 6)[2:6],
    "strided": tensor(4, 12)[:, ::2],
    "parameter": torch.nn.Parameter(tensor(4, 6)),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_of_any_strides(run: Any, name: str) -> None:
    x = INPUTS[name]
    with torch.no_grad():
        for function in (lambda x: x * 2 + 1, lambda x: (x, x[1:], x.sum(0))):
            expected = torch.utils._pytree.tree_leaves(function(x))
            actual = torch.utils._pytree.tree_leaves(run(function, x))
            for mine, theirs in zip(actual, expected, strict=True):
                torch.testing.assert_close(mine, theirs)
                assert mine.stride() == theirs.stride()
                assert (storage(mine) == storage(x)) == (storage(theirs) == storage(x))


def test_inputs_that_share_memory_are_read(run: Any) -> None:
    x = tensor(4, 6)
    result = run(lambda a, b: (a * b.sum(), b), x, x[1])
    torch.testing.assert_close(result[0], x * x[1].sum())


def test_inference_tensors(run: Any) -> None:
    with torch.inference_mode():
        x = tensor(4, 6)
        torch.testing.assert_close(run(lambda x: x * 2, x), x * 2)


def test_errors_of_operators_are_torchs(run: Any) -> None:
    table = tensor(4, 6)
    with pytest.raises(IndexError, match="index out of range"):
        run(
            lambda t, i: F.embedding(i, t),
            table,
            torch.tensor([4]),
            example=(table, torch.tensor([3])),
        )
