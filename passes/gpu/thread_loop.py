"""Owns the building of thread loops around linalg operations on slices."""

from __future__ import annotations

from typing import Any

from magweld.bindings import affine, ir, linalg, scf
from magweld.passes.gpu.cross_thread_reduction import Partials
from magweld.passes.gpu.linalg_structure import LoopNest, inputs_of
from magweld.passes.gpu.structure import thread_mapping
from magweld.passes.gpu.thread_layout import ThreadLayout
from magweld.passes.gpu.thread_slices import strided_subview
from magweld.passes.ir_utils import operations_of


def build_thread_loop(
    op: Any, nest: LoopNest, layout: ThreadLayout, partials: Partials | None = None
) -> None:
    """Build the loop over threads in front of `op`, which is left to be erased.

    Args:
        op: A linalg operation on memrefs, without results.
        nest: Its iteration space.
        layout: How threads share that space.
        partials: Where each thread accumulates, if threads share a reduction.
    """
    shared = [loop for loop, count in enumerate(layout.threads) if count > 1]
    # One thread alone still needs a loop, so that the others skip the work.
    trips = [layout.threads[loop] for loop in shared] or [1]
    rank = len(trips)
    with ir.InsertionPoint(op), op.location:
        forall = scf.ForallOp(
            [0] * rank, trips, [1] * rank, [], mapping=thread_mapping(rank)
        )
        ivs = dict(zip(shared, forall.induction_variables, strict=False))
        with ir.InsertionPoint(forall.body):
            sliced = inputs_of(op) if partials else list(op.operands)
            operands = [
                _slice(value, loops, layout, ivs)
                for value, loops in zip(sliced, nest.maps, strict=False)
            ]
            if partials is not None:
                accumulator = _partial_slice(partials, nest, layout, ivs)
                linalg.fill(partials.neutral_constant(), outs=[accumulator])
                operands.append(accumulator)
            clone = op.operation.clone()
            for position, operand in enumerate(operands):
                clone.operands[position] = operand
            _rebase_indices(clone, layout, ivs)
            scf.InParallelOp()


def _slice(
    value: ir.Value,
    loops: tuple[int | None, ...],
    layout: ThreadLayout,
    ivs: dict[int, ir.Value],
) -> ir.Value:
    if all(loop not in ivs for loop in loops):
        return value
    offsets, sizes, strides = [], [], []
    for loop, whole in zip(loops, value.type.shape, strict=True):
        offsets.append(None if loop is None else ivs.get(loop))
        sizes.append(whole if loop is None else layout.per_thread[loop])
        strides.append(1 if loop is None else layout.threads[loop])
    return strided_subview(value, offsets, sizes, strides)


def _partial_slice(
    partials: Partials,
    nest: LoopNest,
    layout: ThreadLayout,
    ivs: dict[int, ir.Value],
) -> ir.Value:
    """Slice what one thread accumulates: its rows, and one element of the others."""
    kept, dropped = nest.parallel, partials.loops
    return strided_subview(
        partials.buffer,
        [ivs.get(loop) for loop in (*kept, *dropped)],
        [layout.per_thread[loop] for loop in kept] + [1] * len(dropped),
        [layout.threads[loop] for loop in (*kept, *dropped)],
        dropped=len(dropped),
    )


def _rebase_indices(clone: Any, layout: ThreadLayout, ivs: dict[int, ir.Value]) -> None:
    """Make `linalg.index` count in the whole tile again: `t + T * local`."""
    for op in operations_of(clone, linalg.IndexOp):
        loop = ir.IntegerAttr(op.dim).value
        if loop not in ivs:
            continue
        d0, d1 = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1)
        map_ = ir.AffineMap.get(2, 0, [d0 * layout.threads[loop] + d1])
        with ir.InsertionPoint.after(op):
            whole = affine.AffineApplyOp(map_, [op.result, ivs[loop]])
        op.result.replace_all_uses_except(whole.result, whole.operation)
