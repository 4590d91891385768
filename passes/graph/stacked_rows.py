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
        first: The row that the first one is, reshaped; None if it is no row.
    """

    values: list[Any]
    first: Row | None


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
    part: _Part | None = None
    for value in operands:
        row = _row(value, rows)
        if part is not None and _follows(part, row, value):
            part.values.append(value)
            continue
        if part is not None:
            yield part
        part = _Part([value], row)
    if part is not None:
        yield part


def _row(value: Any, rows: Mapping[Any, Row]) -> Row | None:
    op = defining_op(value)
    if op is not None and op.operation.name in _RESHAPES:
        value = op.operation.operands[0]
    return rows.get(value)


def _follows(part: _Part, row: Row | None, value: Any) -> bool:
    first = part.first
    if first is None or row is None or first.whole != row.whole:
        return False
    alike = value.type == part.values[0].type
    return alike and row.number == first.number + len(part.values)


def _joined(part: _Part, dim: int) -> Any:
    """Concatenate the values of a part along a dimension."""
    if part.first is None or len(part.values) == 1:
        return part.values[0]
    count = len(part.values)
    shape = list(ir.RankedTensorType(part.values[0].type).shape)
    rows = _reshaped_rows(_taken(part.first, count), part.values[0])
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
