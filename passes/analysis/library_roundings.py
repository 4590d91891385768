"""Owns what a library of a GPU does behind a product of halves: bias and rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir

_HALVES = (ir.F16Type, ir.BF16Type)


@dataclass(frozen=True)
class Rounding:
    """How sums of f32 become halves.

    Attributes:
        bias: A row of halves that is added before, None for none.
        dim: Along which dimension of the sums.
    """

    bias: Any | None = None
    dim: int = -1


def rounding_of(root: Any) -> Rounding | None:
    """Return what an operation does to its first operand, None if it is no rounding.

    It rounds each element, or the sum of it and of an element of a row, in f32.
    """
    if root.name != "linalg.generic" or len(root.results) != 1:
        return None
    source, *rows = list(root.operands)[:-1]
    if not isinstance(root.results[0].type.element_type, _HALVES):
        return None
    if not isinstance(source.type.element_type, ir.F32Type):
        return None
    maps = [attr.value for attr in ir.ArrayAttr(root.attributes["indexing_maps"])]
    whole = ir.AffineMap.get_identity(len(source.type.shape))
    if maps[0] != whole or maps[-1] != whole:
        return None
    names, chained = _body(root)
    if not rows:
        return Rounding() if chained and names == ["arith.truncf"] else None
    dim = _only_dim(maps[1])
    same = rows[0].type.element_type == root.results[0].type.element_type
    if len(rows) > 1 or dim is None or not same or rows[0].type.rank != 1:
        return None
    added = names == ["arith.extf", "arith.addf", "arith.truncf"] and _adds(root)
    return Rounding(rows[0], dim) if added else None


def _body(root: Any) -> tuple[list[str], bool]:
    """Return the operations of a body, and whether it is a chain from its argument."""
    block = root.regions[0].blocks[0]
    *operations, terminator = (op.operation for op in block.operations)
    value, chained = block.arguments[0], True
    for op in operations:
        chained = chained and list(op.operands) == [value]
        value = op.results[0]
    return [op.name for op in operations], chained and [*terminator.operands] == [value]


def _adds(root: Any) -> bool:
    """Whether a body of a widening, a sum and a rounding does what it seems to."""
    block = root.regions[0].blocks[0]
    widened, added, rounded, terminator = (op.operation for op in block.operations)
    source, row, _ = block.arguments
    return (
        list(widened.operands) == [row]
        and set(added.operands) == {source, widened.results[0]}
        and list(rounded.operands) == [added.results[0]]
        and list(terminator.operands) == [rounded.results[0]]
    )


def _only_dim(map_: Any) -> int | None:
    """Return the loop that alone says where an operand of one dimension is read."""
    results = list(map_.results)
    if len(results) != 1 or not isinstance(results[0], ir.AffineDimExpr):
        return None
    return int(results[0].position)


def widened_source(root: Any) -> Any | None:
    """Return the tensor of halves that an operation widens, None if it does not."""
    if root.name != "linalg.generic" or len(root.operands) != 2:
        return None
    source, result = root.operands[0], root.results[0]
    maps = [attr.value for attr in ir.ArrayAttr(root.attributes["indexing_maps"])]
    names, chained = _body(root)
    plain = {*maps} == {ir.AffineMap.get_identity(len(result.type.shape))}
    is_half = isinstance(ir.ShapedType(source.type).element_type, _HALVES)
    return source if plain and is_half and chained and names == ["arith.extf"] else None
