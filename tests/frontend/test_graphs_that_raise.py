"""A graph that raises on a hit leaves what eager leaves: effects, memory, numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from magweld import frontend

LOG: list[Any] = []


def writes_first(x: Tensor, i: Tensor) -> Tensor:
    LOG.append(1)
    x.add_(1)
    return x[i]


def writes_last(x: Tensor, i: Tensor) -> Tensor:
    LOG.append(1)
    y = x[i]
    x.add_(1)
    return y


def catches(x: Tensor, i: Tensor) -> Tensor:
    x.mul_(2)
    try:
        return x.index_select(0, i) * 2
    except IndexError:
        LOG.append("caught")
        return x.sum(0)


def draws(x: Tensor, i: Tensor) -> Tensor:
    noise = torch.rand(3)
    LOG.append(1)
    return x[i] + noise


def divides(x: Tensor, i: Tensor) -> Tensor:
    whole = x.long()
    x.add_(1)
    try:
        return whole // (9 - i)
    except RuntimeError:
        LOG.append("caught")
        return whole


def branches(x: Tensor, i: Tensor) -> Tensor:
    x.add_(1)
    y = x[i] if x.sum() > 0 else x[i] + 1
    LOG.append("end")
    return y


def writes_a_view(x: Tensor, i: Tensor) -> Tensor:
    x[1:].mul_(3)
    LOG.append(1)
    x.index_add_(0, i, torch.ones_like(i, dtype=x.dtype))
    return x * 2


def outcome(function: Callable[..., Any], index: int) -> tuple[Any, ...]:
    """What a call leaves: result or exception, the input, the log, the generator."""
    LOG.clear()
    torch.manual_seed(3)
    x = torch.arange(4.0)
    try:
        result = function(x, torch.tensor([index])).tolist()
    except (IndexError, RuntimeError) as error:
        result = (type(error), str(error))
    return result, x.tolist(), list(LOG), torch.rand(1).item()


@pytest.mark.parametrize("backend", ["eager", "magweld"])
@pytest.mark.parametrize(
    "function",
    [writes_first, writes_last, catches, draws, divides, branches, writes_a_view],
)
def test_as_eager(function: Callable[..., Any], backend: str) -> None:
    traced = frontend.trace(function, backend=backend)
    for index in (2, 2, 9, 2, 9):
        assert outcome(traced, index) == outcome(function, index)
    assert traced.stats()["hits"] == 4


def test_a_write_that_autograd_has_seen_is_refused() -> None:
    def program(w: Tensor, i: Tensor) -> Tensor:
        x = w
        x.mul_(2)
        return x[i]

    traced = frontend.trace(program, backend="eager")
    w = torch.ones(3, requires_grad=True)
    for _ in range(2):
        assert traced(w * 1, torch.tensor([1])).tolist() == [2.0]
    assert [item.id for item in traced.breaks] == ["tensor-write"]
    with pytest.raises(IndexError):
        traced(w * 1, torch.tensor([7]))


def adds(x: Tensor, w: Tensor) -> None:
    LOG.append(1)
    x += w


def adds_to_a_view(x: Tensor, w: Tensor) -> None:
    LOG.append(1)
    x[1:].add_(w[1:])


@pytest.mark.parametrize("function", [adds, adds_to_a_view])
def test_writes_that_autograd_refuses(function: Callable[..., Any]) -> None:
    """A leaf that needs gradients is not written; what Python did before it stays."""
    w = torch.ones(3, requires_grad=True)

    def other(kind: str) -> Tensor:
        x = torch.zeros(3, requires_grad=kind == "leaf")
        return x + w if kind == "made" else x

    def use(call: Callable[..., Any], kind: str) -> tuple[Any, ...]:
        LOG.clear()
        x = other(kind)
        try:
            call(x, w)
        except RuntimeError as error:
            return str(error), list(LOG)
        return x.tolist(), x.requires_grad, list(LOG)

    traced = frontend.trace(function, backend="eager")
    for kind in ("plain", "plain", "leaf", "made", "made", "leaf", "plain", "leaf"):
        assert use(traced, kind) == use(function, kind)
    assert traced.stats()["records"] == 2
    assert traced.stats()["hits"] >= 3


def test_a_stale_view_counts_as_a_leaf() -> None:
    """Torch makes the new node of a view only when somebody asks for it."""

    def use(call: Callable[..., Any]) -> list[Any]:
        base, w = torch.zeros(4), torch.ones(4, requires_grad=True)
        view, found = base[:3], []
        for x in (base[1:], view):
            LOG.clear()
            try:
                call(x, w[1:])
                found.append(list(LOG))
            except RuntimeError as error:
                found.append((str(error), list(LOG)))
        return found

    for check in (False, True):
        assert use(frontend.trace(adds, backend="eager", check=check)) == use(adds)


def test_recomputation_that_stops_half_way() -> None:
    weight = torch.ones(3, requires_grad=True)

    def program(x: Tensor) -> Tensor:
        LOG.append(1)
        return (x * weight).sin() * weight

    traced = frontend.trace(program, backend="eager")
    for function in (program, traced):
        for _ in range(3):
            LOG.clear()
            x = torch.arange(3.0, requires_grad=True)
            y = checkpoint(function, x, use_reentrant=False)
            y.sum().backward()
            assert LOG == [1, 1]
            assert x.grad is not None
            assert x.grad.tolist() == x.cos().tolist()


def test_recomputation_of_a_plain_graph() -> None:
    weight = torch.ones(3, requires_grad=True)
    traced = frontend.trace(lambda x: (x * weight).sin() * weight, backend="eager")
    for _ in range(3):
        x = torch.arange(3.0, requires_grad=True)
        checkpoint(traced, x, use_reentrant=False).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == x.cos().tolist()
    assert traced.stats()["hits"] >= 3


def test_a_lifted_number_that_an_operator_refuses() -> None:
    def program(x: Tensor, i: Tensor, n: int) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y = x * 2
        try:
            return x * y, i**n
        except RuntimeError:
            return y, i

    traced = frontend.trace(program, backend="eager", dynamic={"n": True})
    i = torch.arange(1, 4)
    for n in (2, 3, -1, 4):
        x = torch.ones(3, requires_grad=True)
        result, power = traced(x, i, n)
        expected, other = program(x, i, n)
        assert torch.equal(result, expected)
        assert torch.equal(power, other)
        assert result.requires_grad == expected.requires_grad
    assert traced.stats()["hits"] == 3
    (told,) = traced.breaks
    assert told.detail.startswith("RuntimeError: Integers to negative")
    assert torch.is_grad_enabled()


def test_a_lifted_number_beyond_what_operators_take() -> None:
    """What Python did before the operator raises is done, whatever the number."""

    def program(x: Tensor, n: int, log: list[int]) -> Tensor:
        log.append(n)
        x.mul_(n)
        return x

    traced = frontend.trace(program, backend="eager", dynamic={"n": True})
    logs: tuple[list[int], list[int]] = ([], [])
    numbers = (3, 4, 2**63, 2**63 + 1, -(2**63) - 1, 5, 2**64, -(2**63), 6)
    for n in numbers:
        found = []
        for function, log in zip((program, traced), logs, strict=True):
            try:
                found.append(function(torch.ones(3), n, log).tolist())
            except (OverflowError, RuntimeError) as error:
                found.append([type(error)])
        assert found[0] == found[1]
        assert logs[0] == logs[1]
    assert traced.stats()["hits"] == 3


def entropy(x: Tensor, y: Tensor) -> Tensor:
    return torch.nn.functional.binary_cross_entropy(x, y)


def searches(x: Tensor, order: Tensor) -> Tensor:
    return torch.searchsorted(x[0], x[0], sorter=order)


def segments(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.segment_reduce(x, "sum", lengths=lengths)


def histogram(x: Tensor, y: Tensor) -> Tensor:
    return torch.histogram(x, bins=4)[0]


def inverse(x: Tensor, y: Tensor) -> Tensor:
    return torch.cholesky_inverse(x @ x.T + torch.eye(3))


def pseudo(x: Tensor, y: Tensor) -> Tensor:
    return torch.linalg.pinv(x)


def bags(x: Tensor, i: Tensor) -> Tensor:
    return torch.nn.functional.embedding_bag(i[None], x)


def powers(x: Tensor, n: Tensor) -> Tensor:
    return torch.gcd(n, n) // n


NAN = torch.full((3, 3), float("nan"))
WHOLE = torch.arange(3)
# What raises, values that it takes, and values that it does not.
RAISING: dict[str, tuple[Callable[..., Tensor], tuple[Any, ...], tuple[Any, ...]]] = {
    "entropy": (entropy, (torch.full((3, 3), 0.5), torch.ones(3, 3)), (NAN - 9, NAN)),
    "searches": (searches, (torch.eye(3), WHOLE), (torch.eye(3), WHOLE + 5)),
    "segments": (segments, (torch.eye(3), WHOLE), (torch.eye(3), WHOLE - 9)),
    "histogram": (histogram, (torch.eye(3), WHOLE), (NAN, WHOLE)),
    "pseudo": (pseudo, (torch.eye(3), WHOLE), (NAN, WHOLE)),
    "bags": (bags, (torch.eye(3), WHOLE), (torch.eye(3), WHOLE + 5)),
    "powers": (powers, (torch.eye(3), WHOLE + 1), (torch.eye(3), WHOLE)),
}


@pytest.mark.parametrize("name", RAISING)
def test_the_program_catches_what_an_operator_raises(name: str) -> None:
    function, right, wrong = RAISING[name]

    def program(x: Tensor, y: Tensor, log: list[str]) -> Any:
        log.append("before")
        x.add_(0)
        try:
            result = function(x, y)
        except (RuntimeError, IndexError):
            log.append("caught")
            return None
        log.append("behind")
        return result

    fast = frontend.trace(program, backend="eager")
    for values in (right, right, right, wrong, right):
        mine, theirs = ([], []), ([], [])
        for log, run in ((mine, fast), (theirs, program)):
            log[0].append(run(values[0].clone(), values[1].clone(), log[1]))
        assert mine[1] == theirs[1]
        torch.testing.assert_close(mine[0], theirs[0], equal_nan=True)
    assert fast.stats()["hits"] >= 2


def test_operators_that_raise_for_no_values_are_operators() -> None:
    from magweld.frontend.operators import infallible

    names = {
        schema.name.removeprefix("aten::").rstrip("_")
        for schema in torch._C._jit_get_all_schemas()
    }
    assert infallible._OTHERS | infallible._ON_INTEGERS <= names
    assert not infallible._OTHERS & {"index", "gather", "embedding", "multinomial"}
