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
