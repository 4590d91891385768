"""Owns the change of what a linalg.generic reads, and through which maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import ir, linalg
from magweld.passes.ir.cloning import ValueMap, clone_mapped
from magweld.passes.ir.linalg_builder import map_array


def loops_known(maps: Sequence[Any]) -> bool:
    """Whether every loop indexes some operand; its extent would be lost otherwise."""
    loops = {
        expr.position
        for map_ in maps
        for expr in map_.results
        if isinstance(expr, ir.AffineDimExpr)
    }
    return bool(maps) and len(loops) == int(maps[0].n_dims)


def replace_reads(
    op: linalg.GenericOp, rewriter: Any, operands: Sequence[Any], maps: Sequence[Any]
) -> None:
    """Replace an operation by one that reads other operands.

    Args:
        op: The operation.
        rewriter: What the pattern was given.
        operands: The inputs to read.
        maps: Indexing maps of the inputs, then of the outputs.
    """
    clone = clone_mapped(op, ValueMap())
    for number, value in enumerate(operands):
        clone.operands[number] = value
    clone.attributes["indexing_maps"] = map_array(maps)
    rewriter.replace_op(op.operation, clone)
