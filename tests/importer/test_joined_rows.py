"""Rows that are joined, and attention to them, in one call of native code."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from recording import Operators, record
from torch import Tensor, fx
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
        given = self.operands(tensors)
        with Operators() as ran:
            *first, last = code(*given)
        assert not ran.names
        return [*first, last[0] if isinstance(last, tuple) else last]

    def operands(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return what the step takes, of what the function takes."""
        inputs = self.external.node.graph.find_nodes(op="placeholder")
        known = dict(zip(inputs, tensors, strict=True))
        return [_made(one, known) for one in self.external.operands]


def _made(node: fx.Node, known: dict[fx.Node, Tensor]) -> Tensor:
    """Return what a node makes in front of the step, which is of no certain size."""
    if node not in known:
        make: Any = node.target
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: _made(n, known))
        known[node] = make(*args, **kwargs)
    return known[node]


@pytest.mark.parametrize("batch", [1, 3])
def test_a_query_and_a_cache_are_one_call(batch: int) -> None:
    step = Step(decoding, cached(LENGTH, batch))
    assert step.code.shared_code == [ATTENTION_CODE]
    for length in (1, 2, 15, 16, 64, 200, 3000):
        tensors, code = cached(length, batch), step.at(length)
        assert isinstance(code, JoinedRows)
        assert code._by_heads
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


@pytest.mark.parametrize("batch", [1, 3])
def test_threads_change_no_bit(batch: int) -> None:
    step, tensors = Step(decoding, cached(LENGTH, batch)), cached(5000, batch)
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


def attending(
    made: Tensor, mask: Tensor | None = None, *, is_causal: bool = False
) -> Tensor:
    """Attend among the rows of a sequence, those of all heads side by side."""
    batch, length, _ = made.shape
    parts = made.view(batch, length, 3, HEADS, SIZE).unbind(2)
    q, k, v = (part.transpose(1, 2) for part in parts)
    mixed = F.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
    return mixed.transpose(1, 2).reshape(batch, length, HEADS * SIZE)


def sequence(length: int, batch: int = 2) -> Tensor:
    """Return what `attending` takes."""
    return torch.randn(batch, length, 3 * HEADS * SIZE)


LENGTHS = (1, 2, 3, 7, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200)
# Of (batch, heads, rows, keys).
MASKS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "keys": lambda n: (2, 1, 1, n),
    "rows": lambda n: (n, n),
    "heads": lambda n: (1, HEADS, n, n),
    "scores": lambda n: (2, HEADS, n, n),
}


@pytest.mark.parametrize("name", MASKS)
def test_attention_with_a_mask_is_one_call(name: str) -> None:
    shape = MASKS[name]
    step = Step(attending, [sequence(LENGTH), torch.randn(shape(LENGTH))])
    for length in LENGTHS:
        mask = torch.randn(shape(length))
        mask[torch.rand(shape(length)) < 0.3] = -torch.inf
        tensors = [sequence(length), mask]
        (result,) = step(length, tensors)
        expected = attending(*tensors)
        assert result.stride() == expected.stride()
        torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("name", MASKS)
def test_attention_with_a_mask_of_truths_is_one_call(name: str) -> None:
    """Also where a row sees no key."""
    shape = MASKS[name]
    truths = torch.ones(shape(LENGTH), dtype=torch.bool)
    step = Step(attending, [sequence(LENGTH), truths])
    assert step.code.shared_code == [ATTENTION_CODE]
    for length in LENGTHS:
        tensors = [sequence(length), torch.rand(shape(length)) < 0.6]
        (result,) = step(length, tensors)
        expected = attending(*tensors)
        assert result.stride() == expected.stride()
        torch.testing.assert_close(result, expected)


def test_a_choice_of_other_numbers_is_added() -> None:
    def chosen(made: Tensor, mask: Tensor, less: Tensor, more: Tensor) -> Tensor:
        return attending(made, torch.where(mask[:, None, None], less, more))

    def given(length: int) -> list[Tensor]:
        mask = torch.rand(2, length) < 0.5
        return [sequence(length), mask, torch.tensor(-0.5), torch.tensor(2.0)]

    step = Step(chosen, given(LENGTH))
    for length in LENGTHS:
        tensors = given(length)
        (result,) = step(length, tensors)
        torch.testing.assert_close(result, chosen(*tensors))


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_without_a_mask_is_one_call(is_causal: bool) -> None:
    function = functools.partial(attending, is_causal=is_causal)
    step = Step(function, [sequence(LENGTH)])
    for length in LENGTHS:
        tensors = [sequence(length)]
        (result,) = step(length, tensors)
        torch.testing.assert_close(result, function(*tensors))


def test_attention_that_ends_a_step_is_dense() -> None:
    def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    step = Step(attended, [torch.randn(2, HEADS, LENGTH, SIZE) for _ in range(3)])
    tensors = [torch.randn(2, HEADS, 21, SIZE) for _ in range(3)]
    (result,) = step(21, tensors)
    assert result.is_contiguous()
    torch.testing.assert_close(result, attended(*tensors))


def test_a_cache_is_attended_to_with_a_mask() -> None:
    def masked(made: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        parts = made.unflatten(-1, (3, HEADS, SIZE)).unbind(-3)
        q, k, v = (part.transpose(1, 2) for part in parts)
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        return k, v, F.scaled_dot_product_attention(q, k, v, mask)

    step = Step(masked, [*cached(LENGTH), torch.randn(1, LENGTH + 1)])
    for length in (1, 15, 64, 200):
        tensors = [*cached(length), torch.randn(1, length + 1)]
        *joined, result = step(length, tensors)
        *copied, expected = masked(*tensors)
        assert all(map(torch.equal, joined, copied))
        torch.testing.assert_close(result, expected)


def of_heads(length: int, heads: int = HEADS, batch: int = 1) -> list[Tensor]:
    """Return a query, a key and a value for each head, and a cache."""
    new = [torch.randn(batch, heads, 1, SIZE) for _ in range(3)]
    return [*new, *[torch.randn(batch, heads, length, SIZE) for _ in range(2)]]


Read = Callable[[Tensor], Tensor]


def read_as(read: Read, query: Read, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Attend to views of a longer cache."""
    q, k, v, keys, values = tensors
    k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
    return k, v, F.scaled_dot_product_attention(query(q), read(k), read(v))


# How keys are read, how the query is, its heads and batches, and whether each head
# reads what was copied for itself.
READ: dict[str, tuple[Read, Read, int, int, bool]] = {
    "as they are": (lambda k: k, lambda q: q, HEADS, 1, True),
    "batches": (lambda k: k, lambda q: q, HEADS, 3, True),
    "batches as heads": (
        lambda k: k.view(1, 3 * HEADS, -1, SIZE),
        lambda q: q.view(1, 3 * HEADS, 1, SIZE),
        HEADS,
        3,
        True,
    ),
    "but the first": (lambda k: k[:, :, 1:], lambda q: q, HEADS, 1, False),
    "of one head": (
        lambda k: k[:, :1].expand(-1, HEADS, -1, -1),
        lambda q: q,
        HEADS,
        1,
        False,
    ),
    "other heads and batches": (
        lambda k: k.transpose(0, 1),
        lambda q: q.transpose(0, 1),
        HEADS,
        3,
        False,
    ),
    "shared by heads": (
        lambda k: k.expand(-1, HEADS, -1, -1),
        lambda q: q.expand(-1, HEADS, -1, -1),
        1,
        1,
        False,
    ),
}


@pytest.mark.parametrize("name", READ)
def test_rows_are_copied_head_by_head_where_each_reads_its_own(name: str) -> None:
    read, query, heads, batch, is_own = READ[name]
    function = functools.partial(read_as, read, query)
    step = Step(function, of_heads(LENGTH, heads, batch))
    for length in (2, 16, 200):
        code = step.at(length)
        assert isinstance(code, JoinedRows)
        assert code._by_heads == is_own
        tensors = of_heads(length, heads, batch)
        for found, expected in zip(
            step(length, tensors), function(*tensors), strict=True
        ):
            torch.testing.assert_close(found, expected)


def test_rows_of_more_than_one_attention_are_copied_before_both() -> None:
    code = Step(decoding, cached(LENGTH)).at(20)
    assert isinstance(code, JoinedRows)
    assert code._by_heads
    assert not replace(code, attentions=code.attentions * 2)._by_heads


@pytest.mark.parametrize(("rows", "is_own"), [(64, True), (65, False)])
def test_rows_that_several_parts_of_a_head_read_are_copied_before(
    rows: int, is_own: bool
) -> None:
    def longer(*tensors: Tensor) -> tuple[Tensor, ...]:
        q, k, v, keys, values = tensors
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        return k, v, F.scaled_dot_product_attention(q, k, v)

    def given(length: int) -> list[Tensor]:
        return [torch.randn(1, HEADS, rows, SIZE), *of_heads(length)[1:]]

    step = Step(longer, given(LENGTH))
    code = step.at(20)
    assert isinstance(code, JoinedRows)
    assert code._by_heads == is_own
    tensors = given(20)
    for found, expected in zip(step(20, tensors), longer(*tensors), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("heads", "is_own"), [(HEADS, True), (1, False)])
def test_a_mask_is_joined_as_well(heads: int, is_own: bool) -> None:
    def masked(*tensors: Tensor) -> tuple[Tensor, ...]:
        q, k, v, keys, values, mask, more = tensors
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        mask = torch.cat([mask, more], 3)
        return k, v, mask, F.scaled_dot_product_attention(q, k, v, mask)

    def given(length: int) -> list[Tensor]:
        masks = [torch.randn(1, heads, 1, n) for n in (length, 1)]
        return [*of_heads(length), *masks]

    step = Step(masked, given(LENGTH))
    for length in (1, 40):
        code = step.at(length)
        assert isinstance(code, JoinedRows)
        assert code._by_heads == is_own
        tensors = given(length)
        for found, expected in zip(
            step(length, tensors), masked(*tensors), strict=True
        ):
            torch.testing.assert_close(found, expected)


def test_masks_with_gaps_and_other_types_are_left_to_torch() -> None:
    def masked(made: Tensor, mask: Tensor) -> Tensor:
        return attending(made, mask.transpose(-1, -2))

    step = Step(masked, [sequence(LENGTH), torch.randn(LENGTH, LENGTH)])
    assert not isinstance(step.at(5), JoinedRows)
    step = Step(masked, [sequence(LENGTH), torch.ones(2, 1, LENGTH, LENGTH) > 0])
    assert not isinstance(step.at(5), JoinedRows)
    tensors = [sequence(5), torch.rand(2, 1, 5, 5) < 0.6]
    (result,) = step.at(5)(*step.operands(tensors))
    torch.testing.assert_close(result, masked(*tensors))
    step = Step(decoding, [tensor.double() for tensor in cached(LENGTH)])
    assert not isinstance(step.at(5), JoinedRows)
