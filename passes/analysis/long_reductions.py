"""Owns the reading of reductions that can be made in parts which are merged then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, linalg
from magweld.dialects.tile_graph import captured_values
from magweld.passes.analysis.index_maps import (
    is_projection,
    loop_extents,
    loops_of,
)
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.constants import constant_number, filled_with

# Associative and commutative operations, with the number that changes nothing; None
# where any number does not when it is taken more than once.
_NEUTRAL: dict[str, int | None] = {
    "arith.addf": 0,
    "arith.addi": 0,
    "arith.mulf": 1,
    "arith.muli": 1,
    "arith.xori": 0,
    "arith.maximumf": None,
    "arith.minimumf": None,
    "arith.maxnumf": None,
    "arith.minnumf": None,
    "arith.maxsi": None,
    "arith.minsi": None,
    "arith.maxui": None,
    "arith.minui": None,
    "arith.andi": None,
    "arith.ori": None,
}
# Partial results of fewer bits would be rounded where a register is not.
_LEAST_BITS = 32


@dataclass(frozen=True)
class Reduction:
    """A linalg operation that merges `f(inputs)` over some loops into its result.

    Attributes:
        op: The operation.
        maps: Indexing maps of its operands; every index is a loop or constant.
        extents: Trip counts.
        reduced: Loops that the result has no dimension for, from outside in.
        merge: Name of the operation that merges.
        start: Scalar that the result is filled with before.
    """

    op: Any
    maps: tuple[Any, ...]
    extents: tuple[int, ...]
    reduced: tuple[int, ...]
    merge: str
    start: Any


def reduction_of(op: Any) -> Reduction | None:
    """Return how an operation reduces; None where parts of it could not be merged."""
    op = op.operation
    if not op.name.startswith("linalg.") or len(op.results) != 1 or not op.regions:
        return None
    if linalg.isa_convolution_op(op) or not _has_plain_types(op):
        return None
    maps = [attribute.value for attribute in linalg.get_indexing_maps(op) or ()]
    if not maps or not all(_takes_loops_once(map_) for map_ in maps):
        return None
    extents = loop_extents(maps, [_shape(value) for value in op.operands])
    merge, start = _merge(op), filled_with(op.operands[len(op.operands) - 1])
    if extents is None or merge is None or not _changes_nothing(merge, start):
        return None
    kept = set(loops_of(maps[-1]))
    reduced = tuple(loop for loop in range(len(extents)) if loop not in kept)
    if not reduced:
        return None
    return Reduction(op, tuple(maps), extents, reduced, merge, start)


def _has_plain_types(op: Any) -> bool:
    """Operands are tensors, all of whose elements the body gets by its arguments."""
    if not all(isinstance(value.type, ir.RankedTensorType) for value in op.operands):
        return False
    element = ir.RankedTensorType(op.results[0].type).element_type
    narrow = isinstance(element, ir.FloatType) and element.width < _LEAST_BITS
    body = op.regions[0].blocks[0].operations
    indexed = any(inner.operation.name == "linalg.index" for inner in body)
    captured = captured_values(op)
    tensors = any(isinstance(v.type, ir.RankedTensorType) for v in captured)
    return not (narrow or indexed or tensors)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(value.type).shape)


def _takes_loops_once(map_: Any) -> bool:
    """Whether every index is a loop that occurs once, or a constant."""
    loops = loops_of(map_)
    return len(set(loops)) == len(loops) and is_projection(map_)


def _merge(op: Any) -> str | None:
    """The operation that merges a value into the result, as the last of the body."""
    block = op.regions[0].blocks[0]
    *_, terminator = block.operations
    *_, total = block.arguments
    last = defining_op(terminator.operands[0])
    if last is None or last.operation.name not in _NEUTRAL:
        return None
    merges = len(list(total.uses)) == 1 and total in list(last.operation.operands)
    return str(last.operation.name) if merges else None


def _changes_nothing(merge: str, start: Any | None) -> bool:
    number = None if start is None else constant_number(start)
    return number is not None and _NEUTRAL[merge] in (None, number)
