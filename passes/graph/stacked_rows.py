"""Owns the joining of rows that loops return one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from magweld.bindings import ir, linalg, tensor
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.tensor_reshapes import collapse, expand
from magweld.passes.ir.tensor_slices import extract_slice
from magweld.passes.ir.utils import groups_of, operations_of

_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")
_VIEWS = (*_RESHAPES, "tensor.extract_slice")
# Tensors whose rows are joined in turn: results of one iteration, at most.
_MOST_TENSORS = 64


@dataclass(frozen=True)
class Row:
    """A value that is one row of a tensor, without that dimension.

    Attributes:
        whole: The tensor.
        number: Which row.
    """

    whole: Any
    number: int


@dataclass(frozen=True)
class _Part:
    """Operands of a concatenation that follow each other.

    Attributes:
        values: The operands.
        turn: The rows that the first ones are, reshaped, one of each tensor; the
            others are further rows of these tensors in turn. Empty if a single value
            is no row.
    """

    values: list[Any]
    turn: list[Row]

    @property
    def count(self) -> int:
        """How many rows of each tensor."""
        return len(self.values) // len(self.turn)


def join_rows(function: Any, rows: Mapping[Any, Row]) -> None:
    """Concatenate rows that follow each other at once; drop rows that nobody reads.

    Args:
        function: The function.
        rows: For a value which row of which tensor it is.
    """
    for concat in operations_of(function, tensor.ConcatOp):
        parts = list(_parts(list(concat.operation.operands), rows))
        if all(len(part.values) == 1 for part in parts):
            continue
        dim = ir.IntegerAttr(concat.operation.attributes["dim"]).value
        with ir.InsertionPoint(concat), concat.location:
            values = [_joined(part, dim) for part in parts]
            new = values[0]
            if len(values) > 1:
                new = tensor.ConcatOp(concat.result.type, dim, values).result
        concat.result.replace_all_uses_with(new)
        old = list(concat.operation.operands)
        concat.operation.erase()
        _drop(value for value in old if value not in rows)
    _drop(rows)


def _parts(operands: Sequence[Any], rows: Mapping[Any, Row]) -> Iterator[_Part]:
    found = [_row(value, rows) for value in operands]
    at = 0
    while at < len(operands):
        turn = _turn(found, at)
        length = _length(operands, found, at, turn)
        if length < 2 * len(turn) or not turn:
            turn, length = [], 1
        yield _Part(list(operands[at : at + length]), turn)
        at += length


def _turn(found: Sequence[Row | None], at: int) -> list[Row]:
    """Return the rows from a place on as far as they are one row of different tensors.

    The tensors are of one type.
    """
    turn: list[Row] = []
    for row in found[at : at + _MOST_TENSORS]:
        if row is None or any(row.whole == other.whole for other in turn):
            break
        if turn and _place(row) != _place(turn[0]):
            break
        turn.append(row)
    return turn


def _place(row: Row) -> tuple[int, Any]:
    return row.number, row.whole.type


def _length(
    operands: Sequence[Any], found: Sequence[Row | None], at: int, turn: Sequence[Row]
) -> int:
    """Return how many operands from a place on are rows of tensors in turn."""
    for length in range(len(operands) - at if turn else 0):
        trips, number = divmod(length, len(turn))
        wanted = Row(turn[number].whole, turn[number].number + trips)
        same_type = operands[at + length].type == operands[at].type
        if not same_type or found[at + length] != wanted:
            return length - length % len(turn)
    return (len(operands) - at) // max(1, len(turn)) * len(turn)


def _row(value: Any, rows: Mapping[Any, Row]) -> Row | None:
    op = defining_op(value)
    if op is not None and op.operation.name in _RESHAPES:
        value = op.operation.operands[0]
    return rows.get(value)


def _joined(part: _Part, dim: int) -> Any:
    """Concatenate the values of a part along a dimension."""
    if not part.turn:
        return part.values[0]
    count = len(part.values)
    shape = list(ir.RankedTensorType(part.values[0].type).shape)
    rows = _reshaped_rows(_interleaved(part), part.values[0])
    # The rows come first; they belong in front of what is concatenated.
    if prod(shape[:dim]) != 1:
        rank = len(shape)
        order = [*range(1, dim + 1), 0, *range(dim + 1, rank + 1)]
        sizes = [*shape[:dim], count, *shape[dim:]]
        element = ir.RankedTensorType(rows.type).element_type
        empty = tensor.EmptyOp(sizes, element).result
        rows = linalg.transpose(rows, outs=[empty], permutation=order).results[0]
        groups = [[d] for d in range(dim)]
        groups += [[dim, dim + 1], *([d + 1] for d in range(dim + 1, rank))]
        return collapse(rows, groups)
    # Extents of one may stand anywhere.
    flat = collapse(rows, [list(range(len(shape) + 1))])
    sizes = [*shape[:dim], count * shape[dim], *shape[dim + 1 :]]
    return expand(flat, sizes, [list(range(len(sizes)))])


def _interleaved(part: _Part) -> Any:
    """Return the rows of a part one after another."""
    wholes = [_taken(first, part.count) for first in part.turn]
    if len(wholes) == 1:
        return wholes[0]
    trips, *row = ir.RankedTensorType(wholes[0].type).shape
    groups = [[0, 1], *([d + 2] for d in range(len(row)))]
    columns = [expand(whole, [trips, 1, *row], groups) for whole in wholes]
    element = ir.RankedTensorType(wholes[0].type).element_type
    shape = [trips, len(wholes), *row]
    joined = tensor.ConcatOp(ir.RankedTensorType.get(shape, element), 1, columns)
    return collapse(joined.result, groups)


def _taken(first: Row, count: int) -> Any:
    shape = list(ir.RankedTensorType(first.whole.type).shape)
    if count == shape[0]:
        return first.whole
    sizes = [count, *shape[1:]]
    return extract_slice(
        first.whole, [first.number, *[0] * (len(shape) - 1)], sizes, sizes
    )


def _reshaped_rows(rows: Any, like: Any) -> Any:
    """Reshape each row as the reshape does that makes `like`, if one does."""
    op = defining_op(like)
    if op is None or op.operation.name not in _RESHAPES:
        return rows
    groups = [[0], *([d + 1 for d in group] for group in groups_of(op.opview))]
    if op.operation.name == "tensor.collapse_shape":
        return collapse(rows, groups)
    count = ir.RankedTensorType(rows.type).shape[0]
    return expand(rows, [count, *ir.RankedTensorType(like.type).shape], groups)


def _drop(values: Iterable[Any]) -> None:
    """Erase the slices and reshapes that make values which nobody reads."""
    for value in dict.fromkeys(values):
        op = defining_op(value)
        if op is None or op.operation.name not in _VIEWS:
            continue
        if not list(value.uses):
            op.operation.erase()
