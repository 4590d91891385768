"""Rows that are joined, and attention to them, in one call of native code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from recording import Operators, record
from torch import Tensor
from torch.nn import functional as F

from magweld.artifact import StandIns
from magweld.codegen.attention_code import ATTENTION_CODE
from magweld.codegen.shared_code import float_lanes
from magweld.importer.importer import import_graph
from magweld.importer.joined_rows import JoinedRows

SIZE = float_lanes()
HEADS = 4
# Stands for a length.
LENGTH = 61


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def decoding(made: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
    """Attend with one query to a cache and the key that is added."""
    parts = made.unflatten(-1, (3, HEADS, SIZE)).unbind(-3)
    q, k, v = (part.transpose(1, 2) for part in parts)
    k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
    return k, v, F.scaled_dot_product_attention(q, k, v)


def cached(length: int, batch: int = 1, size: int = SIZE) -> list[Tensor]:
    """Return what `decoding` takes."""
    cache = [torch.randn(batch, HEADS, length, size) for _ in range(2)]
    return [torch.randn(batch, 1, 3 * HEADS * size), *cache]


class Step:
    """The one step that runs a function, for any size.

    Args:
        function: Returns what the step makes, in order.
        examples: What it takes, for the size that `LENGTH` stands for.
        more: How many rows are joined to so many.
    """

    def __init__(
        self, function: Callable[..., Any], examples: Sequence[Tensor], more: int = 1
    ) -> None:
        self._more = more
        numbers = StandIns((LENGTH, LENGTH + more))
        graph = record(function, *examples)
        with torch.no_grad():
            found = import_graph(graph, examples, stand_ins=numbers)
        (self.external,) = found.externals.values()
        code = self.external.sized(numbers)
        assert code is not None
        self.code = code

    def at(self, size: int) -> Callable[..., Any]:
        """Return what runs it for a size."""
        return self.code.at((size, size + self._more))

    def __call__(self, size: int, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run it, with no operator of torch, and return its results."""
        code = self.at(size)
        assert isinstance(code, JoinedRows)
        inputs = self.external.node.graph.find_nodes(op="placeholder")
        given = [tensors[inputs.index(one)] for one in self.external.operands]
        with Operators() as ran:
            *first, last = code(*given)
        assert not ran.names
        return [*first, last[0] if isinstance(last, tuple) else last]


@pytest.mark.parametrize("batch", [1, 3])
def test_a_query_and_a_cache_are_one_call(batch: int) -> None:
    step = Step(decoding, cached(LENGTH, batch))
    assert step.code.shared_code == [ATTENTION_CODE]
    for length in (1, 2, 15, 16, 64, 200, 3000):
        tensors = cached(length, batch)
        *joined, result = step(length, tensors)
        *copied, expected = decoding(*tensors)
        assert all(map(torch.equal, joined, copied))
        torch.testing.assert_close(result, expected)


def test_it_runs_on_addresses_in_any_order() -> None:
    step, tensors = Step(decoding, cached(LENGTH)), cached(20)
    code = step.at(20)
    assert isinstance(code, JoinedRows)
    made = [torch.empty(shape) for shape, _, _ in code.results]
    inputs = step.external.node.graph.find_nodes(op="placeholder")
    given = [tensors[inputs.index(one)] for one in step.external.operands]
    places = (5, 1, 4, 2, 0, 3)
    table = (ctypes.c_int64 * 6)()
    for place, tensor in zip(places, (*given, *made), strict=True):
        table[place] = tensor.data_ptr()
    code.run(ctypes.addressof(table), places)
    assert all(map(torch.equal, made, step(20, tensors)))


def test_threads_change_no_bit() -> None:
    step, tensors = Step(decoding, cached(LENGTH)), cached(5000)
    before, found = torch.get_num_threads(), []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append(step(5000, tensors))
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, one, other) for one in found for other in found)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 1, 7), (3, 1, 1), (1, 40, 1)])
def test_rows_of_any_extents_are_joined(shape: tuple[int, ...], dim: int) -> None:
    def joined(first: Tensor, second: Tensor, third: Tensor) -> Tensor:
        return torch.cat([first, second, third], dim)

    def given(size: int) -> list[Tensor]:
        whole = [*shape]
        whole[dim] = size
        return [torch.randn(one) for one in (shape, whole, shape)]

    step = Step(joined, given(LENGTH), 2 * shape[dim])
    for size in (1, 4, 33):
        tensors = given(size)
        assert torch.equal(step(size, tensors)[0], joined(*tensors))


def test_rows_that_lie_apart_are_joined_by_torch() -> None:
    def joined(first: Tensor, second: Tensor) -> Tensor:
        return torch.cat([first, second.transpose(1, 2)], 2)

    step = Step(joined, [torch.randn(2, 3, LENGTH), torch.randn(2, 5, 3)], 5)
    assert not isinstance(step.at(5), JoinedRows)


def test_masks_and_other_types_are_left_to_torch() -> None:
    def masked(made: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        parts = made.unflatten(-1, (3, HEADS, SIZE)).unbind(-3)
        q, k, v = (part.transpose(1, 2) for part in parts)
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        return k, v, F.scaled_dot_product_attention(q, k, v, mask)

    step = Step(masked, [*cached(LENGTH), torch.randn(1, LENGTH + 1)])
    assert not isinstance(step.at(5), JoinedRows)
    step = Step(decoding, [tensor.double() for tensor in cached(LENGTH)])
    assert not isinstance(step.at(5), JoinedRows)
