"""Tensors that operators take for numbers: what a hit knows stands in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

from magweld.frontend.traced import Traced, trace

X, Y = torch.arange(24.0).view(4, 6), -torch.arange(24.0).view(4, 6)


def fixed(number: float, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor that follows from nothing but the program."""
    return torch.tensor(number, dtype=dtype) * 2 - number


def written_before(x: Tensor) -> Tensor:
    n = torch.zeros(3, dtype=torch.int64)
    n[1:].add_(2)
    return x[:, n[1] :]


def writes_at_itself(x: Tensor) -> Tensor:
    table = torch.tensor([0, 2, 1, 3])
    table[table[1]] = 7
    return x + table.view(-1, 1)


def reads_itself(x: Tensor) -> Tensor:
    n = torch.tensor([1])
    return x * len(n[n:])


def pads_to_ten(x: Tensor) -> Tensor:
    more = torch.tensor([10 - x.size()[1]])
    return F.pad(x, [more // 2, more - more // 2, 1, 0])


def is_scaled_by_it(x: Tensor) -> Tensor:
    # The tensor decides about the type, the number does not.
    n = torch.tensor(3)
    return torch.add(torch.tensor(1, dtype=torch.int32), n, alpha=n) * x


KNOWN: dict[str, Callable[[Tensor], Any]] = {
    "slice": lambda x: x[:, fixed(1) : fixed(3)],
    "slice of int8": lambda x: x[fixed(1, torch.int8) :],
    "step": lambda x: x[:: fixed(2)],
    "element": lambda x: x[fixed(2)],
    "element from the end": lambda x: x[..., -fixed(2), None],
    "tuple of elements": lambda x: x[fixed(1), fixed(2)] * x,
    "one element": lambda x: x[: torch.tensor([3])],
    "clamp": lambda x: x.clamp(0, fixed(9)),
    "clamp with a float": lambda x: torch.clamp(x, min=0, max=fixed(9.5)),
    "alpha": lambda x: torch.add(x, x, alpha=fixed(3)),
    "narrow": lambda x: x.narrow(1, fixed(1), fixed(2)),
    "view": lambda x: x.view(fixed(2), -1),
    "view of a list": lambda x: x.view([fixed(2), 12]),
    "expand": lambda x: x[:1].expand(fixed(3), -1),
    "repeat": lambda x: x.repeat(fixed(2), 1),
    "select": lambda x: x.select(fixed(1), fixed(3)),
    "zeros": lambda x: torch.zeros(fixed(4), 1) + x,
    "arange": lambda x: torch.arange(fixed(6)) + x,
    "arange of floats": lambda x: torch.arange(fixed(6.0)) + x,
    "full": lambda x: torch.full((fixed(4), 1), fixed(3)) + x,
    "full of truth": lambda x: torch.full((4, 1), torch.tensor(1) > 0) & (x > 0),
    "new_full": lambda x: x.new_full((fixed(4),), fixed(3)),
    "chunk": lambda x: x.chunk(fixed(2))[1],
    "roll": lambda x: x.roll(fixed(1), 1),
    "tile": lambda x: x.tile(fixed(2)),
    "as_strided": lambda x: x.as_strided([fixed(2), 5], [fixed(6), 1]),
    "eye": lambda x: torch.eye(fixed(4)) @ x,
    "topk": lambda x: x.topk(fixed(2))[0],
    "empty": lambda x: torch.empty(fixed(4), 6).copy_(x),
    "unfold": lambda x: x.unfold(1, fixed(3), fixed(2)),
    "pad": lambda x: F.pad(x, [fixed(1), 2]),
    "pad by a list of one": pads_to_ten,
    "size of the input": lambda x: x[:, : torch.tensor(x.shape[0]) // 2],
    "written before": written_before,
    "writes at itself": writes_at_itself,
    "reads itself": reads_itself,
}


def run(function: Callable[[Tensor], Any], *calls: Tensor) -> Traced:
    """Call the traced form and compare with eager; return it."""
    traced = trace(function, backend="eager")
    for x in calls:
        expected = function(x.clone())
        assert_close(traced(x.clone()), expected, rtol=0, atol=0, check_stride=True)
    return traced


@pytest.mark.parametrize("name", KNOWN)
def test_shapes_that_follow_from_the_program_are_no_values(name: str) -> None:
    def program(x: Tensor) -> Any:
        y = KNOWN[name](x)
        return y * (1 + len(y.shape) + y.shape[0])

    traced = run(program, X, Y, X)
    assert traced.stats()["hits"] == 2, traced.explain()
    (record,) = traced.records
    assert not record.breaks
    assert "predicate" not in {guard.category for guard in record.guards}


def chosen_by_the_call(n: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    return lambda x: x[: n(x)] * 2


OPEN: dict[str, Callable[[Tensor], Any]] = {
    "of the input": chosen_by_the_call(lambda x: (x > 12).sum()),
    "drawn": chosen_by_the_call(lambda x: torch.randint(1, 4, ())),
    "bounds": lambda x: x[torch.tensor(1) : (x > 12).sum()],
    "written": chosen_by_the_call(lambda x: torch.tensor(2).copy_((x > 12).sum())),
}


@pytest.mark.parametrize("name", OPEN)
def test_shapes_that_follow_from_the_call_stay_values(name: str) -> None:
    traced = trace(OPEN[name], backend="eager")
    for x in (X, Y, X + 6, Y):
        torch.manual_seed(len(name))
        expected = OPEN[name](x)
        torch.manual_seed(len(name))
        assert_close(traced(x), expected, rtol=0, atol=0)
    assert traced.stats()["hits"] >= 2, traced.explain()


OTHER: dict[str, Callable[[Tensor], Any]] = {
    "a list of tensors": lambda x: x[[fixed(1), fixed(2)]],
    "a mask": lambda x: x[torch.tensor(True)],
    "bytes": lambda x: x[torch.tensor(1, dtype=torch.uint8)],
    "both operand and number": is_scaled_by_it,
}


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_what_is_no_number(name: str) -> None:
    run(OTHER[name], X, Y, X)


def test_a_position_that_is_not_there() -> None:
    traced = trace(lambda x: x[fixed(7)], backend="eager")
    for _ in range(3):
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            traced(X)


def test_a_count_in_a_tensor_stays_the_counter_of_a_loop() -> None:
    weights = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0])

    def program(x: Tensor) -> Tensor:
        at = torch.tensor(0)
        while x.sum() > 0:
            x = x - weights[at]
            at = at + 1
        return x

    traced = trace(program, backend="eager")
    for total in (0.5, 2.5, 6.5, 14.5, 2.0):
        x = torch.tensor([total, 0.0, 0.0, 0.0])
        assert_close(traced(x), program(x))
    assert traced.stats()["graphs"] <= 2, traced.explain()


def around_the_middle(x: Tensor) -> Tensor:
    """Take as many rows of a table as there are columns, at most 12."""
    span = torch.tensor(min(x.shape[1], 12))
    table = torch.arange(48.0).view(24, 2)
    y = table[12 - span : 12 + span]
    return (x.sum() + y * y.shape[0]).clamp(0, span * 2 - 1)


def test_sizes_are_followed_through_tensors() -> None:
    sizes = (2, 3, 4, 5, 9, 11, 6, 12)
    traced = run(around_the_middle, *(torch.ones(2, n) for n in sizes))
    assert traced.stats()["records"] <= 3, traced.explain()


@pytest.mark.filterwarnings("ignore:Truncating the start/stop/step of slice")
def test_a_number_that_is_too_large_for_a_tensor() -> None:
    def program(x: Tensor, n: int) -> Tensor:
        return x[: torch.tensor(n) * 2] * 2

    traced = trace(program, backend="eager")
    # The last product is -2**63.
    for n in (1, 2, 3, 1, 2, 2**61, 2**62):
        assert_close(traced(X, n), program(X, n))
    assert traced.stats()["hits"] >= 2, traced.explain()
    for call in (program, traced):
        with pytest.raises((RuntimeError, ValueError), match="Overflow"):
            call(X, 2**63)


def padded(amounts: Callable[[Tensor], Any], **how: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: F.pad(torch.ones(2, 3), amounts(x), **how)


PADDED: dict[str, Callable[[Tensor], Tensor]] = {
    "by a size": padded(lambda x: [x.shape[1], 1]),
    "around": padded(lambda x: (x.shape[1] // 2, x.shape[1] - x.shape[1] // 2)),
    "two dimensions": padded(lambda x: [1, x.shape[1], x.shape[1] - 2, 0], value=3.0),
    "less and more": padded(lambda x: [x.shape[1] - 5, 4]),
    "truth": lambda x: F.pad(x > 0, (x.shape[1], 1), value=True),
    "by rest": lambda x: F.pad(x, (0, -x.shape[1] % 8)),
    "by a tensor": padded(lambda x: [torch.tensor([x.shape[1]]), 1]),
    "by quotients": padded(lambda x: [torch.tensor([[x.shape[1]]]) // 2, 1]),
    "by a quotient of it": padded(lambda x: [20 // torch.tensor(x.shape[1]), 1]),
    "by remainders": padded(lambda x: [torch.tensor(x.shape[1]) % 4, 1]),
    "by a remainder of it": padded(lambda x: [20 % torch.tensor(x.shape[1]), 1]),
    "to a size": lambda x: pads_to_ten(x) * 2,
}


@pytest.mark.parametrize("name", PADDED)
def test_how_much_is_padded_follows_sizes(name: str) -> None:
    sizes = (3, 3, 4, 5, 7, 6, 9, 8, 10)
    traced = run(PADDED[name], *(torch.ones(2, n) for n in sizes))
    assert traced.stats()["records"] <= 4, traced.explain()
    assert traced.stats()["hits"] >= len(sizes) - 4


@pytest.mark.parametrize("sliced", [True, False])
def test_other_paddings_have_the_form_that_torch_gives_them(sliced: bool) -> None:
    def program(x: Tensor) -> Tensor:
        image = torch.ones(1, 4, 4, 4).contiguous(memory_format=torch.channels_last)
        image = image[:, ::2] if sliced else image
        return F.pad(image, (x.shape[1] - 3, 0))

    run(program, *(torch.ones(2, n) for n in (3, 4, 5, 6, 4, 3, 5)))


def test_a_quotient_of_nothing_raises() -> None:
    def program(x: Tensor) -> Tensor:
        return x[:, : 12 // torch.tensor(x.shape[1] - 4)]

    traced = trace(program, backend="eager")
    for n in (5, 6, 7, 8, 4, 9, 4, 10):
        if n == 4:
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                traced(torch.ones(2, n))
        else:
            assert_close(traced(torch.ones(2, n)), program(torch.ones(2, n)))
