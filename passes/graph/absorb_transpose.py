"""Owns the pass that lets generic operations read and write through transposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.graph.generic_reads import replace_reads
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import ValueMap, clone_mapped, defining_op
from magweld.passes.ir.constants import filled_with
from magweld.passes.ir.linalg_builder import map_array


def absorb_operands(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Read the source of a transposed operand through a permuted indexing map."""
    if not _on_tensors(op):
        return False
    maps = [attr.value for attr in op.indexing_maps]
    operands = list(op.inputs)
    for number, value in enumerate(operands):
        found = _transpose_of(value)
        if found is None or not (_is_contraction(op) or _keeps_rows(found)):
            continue
        operands[number] = found.input
        maps[number] = _permuted(maps[number], list(found.permutation))
    if operands == list(op.inputs):
        return False
    replace_reads(op, rewriter, operands, maps)
    return True


def absorb_result(op: linalg.TransposeOp, rewriter: Any) -> bool:
    """Write a contraction's result in the order that a transpose would give it."""
    if not op.results or not isinstance(op.input.type, ir.RankedTensorType):
        return False
    producer = defining_op(op.input)
    if not isinstance(producer, linalg.GenericOp) or len(producer.results) != 1:
        return False
    start = filled_with(producer.outputs[0])
    uses = list(op.input.uses)
    if len(uses) != 1 or not _is_contraction(producer) or not _keeps_rows(op):
        return False
    if start is None:
        return False
    maps = [attr.value for attr in producer.indexing_maps]
    results = list(maps[-1].results)
    moved = [results[dim] for dim in op.permutation]
    maps[-1] = ir.AffineMap.get(maps[-1].n_dims, 0, moved)
    type_ = ir.RankedTensorType(op.results[0].type)
    empty = tensor.EmptyOp(list(type_.shape), type_.element_type).result
    init = linalg.fill(start, outs=[empty])
    clone = clone_mapped(producer, ValueMap())
    clone.operands[len(producer.inputs)] = init
    clone.attributes["indexing_maps"] = map_array(maps)
    clone.results[0].set_type(type_)
    rewriter.replace_op(op.operation, clone)
    return True


def _on_tensors(op: Any) -> bool:
    return len(op.results) > 0


def _is_contraction(op: Any) -> bool:
    return bool(linalg.isa_contraction_op(op.operation))


def _keeps_rows(transpose: Any) -> bool:
    """The innermost dimension stays: reading in the other order keeps runs long."""
    permutation = list(transpose.permutation)
    return bool(permutation[-1] == len(permutation) - 1)


def _transpose_of(value: Any) -> linalg.TransposeOp | None:
    producer = defining_op(value)
    return producer if isinstance(producer, linalg.TransposeOp) else None


def _permuted(map_: Any, permutation: list[int]) -> Any:
    # transposed[i] has the extent of source[permutation[i]].
    results = list(map_.results)
    moved = list(results)
    for position, source in enumerate(permutation):
        moved[source] = results[position]
    return ir.AffineMap.get(map_.n_dims, 0, moved)


@dataclass(frozen=True)
class AbsorbTranspose(PatternPass):
    """Fold `linalg.transpose` into the indexing maps of generic operations.

    A `linalg.generic` reads the source of a transposed operand through a permuted
    map, and a contraction whose only reader is a transpose writes its result in that
    order at once. Permutations that move the innermost dimension are folded into
    contractions only: elsewhere they would break up the runs of contiguous memory,
    and a transpose of its own is faster.
    """

    name: ClassVar[str] = "absorb-transpose"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the pattern for operands and the one for results."""
        return (
            (linalg.GenericOp, absorb_operands),
            (linalg.TransposeOp, absorb_result),
        )
