"""Owns what CPU passes ask about a `linalg.generic`: maps, reductions and fills."""

from __future__ import annotations

from magweld.bindings import ir
from magweld.passes.cpu.buffer_roots import last_use_before

# What never traps, whatever numbers it is given.
_FLOAT_ARITHMETIC = frozenset(
    {
        "arith.addf",
        "arith.cmpf",
        "arith.divf",
        "arith.maximumf",
        "arith.maxnumf",
        "arith.minimumf",
        "arith.minnumf",
        "arith.mulf",
        "arith.negf",
        "arith.select",
        "arith.subf",
        "linalg.yield",
    }
)


def maps_of(op: ir.Operation) -> list[ir.AffineMap]:
    """Return the map of each operand of a `linalg.generic`."""
    return [attribute.value for attribute in op.attributes["indexing_maps"]]


def has_reduction(op: ir.Operation) -> bool:
    """Whether a `linalg.generic` has a reduction loop."""
    return any("reduction" in str(kind) for kind in op.attributes["iterator_types"])


def has_one_result(op: ir.Operation) -> bool:
    """Whether a `linalg.generic` writes one operand, its last."""
    return len(op.operands) == int(op.attributes["operandSegmentSizes"][0]) + 1


def is_float_arithmetic(block: ir.Block) -> bool:
    """Whether a body is arithmetic of floats, comparisons and choices."""
    return all(op.operation.name in _FLOAT_ARITHMETIC for op in block.operations)


def fill_value(op: ir.Operation) -> ir.Value | None:
    """Return the value from outside that all elements of the only operand get.

    None for operations that do anything else.
    """
    if op.name != "linalg.generic" or len(op.operands) != 1:
        return None
    body = op.regions[0].blocks[0]
    *others, terminator = body.operations
    value = terminator.operands[0]
    if others or value.owner == body or not maps_of(op)[0].is_permutation:
        return None
    return value


def fill_before(op: ir.Operation) -> ir.Operation | None:
    """Return what gives all of the last operand of `op` the value it begins from.

    Nothing in between reads or writes that buffer.
    """
    result = op.operands[len(op.operands) - 1]
    found = last_use_before(op, result)
    if found is None or fill_value(found) is None or found.operands[0] != result:
        return None
    return found
