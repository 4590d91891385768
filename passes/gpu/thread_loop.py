"""Owns the building of thread loops around linalg operations on slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import affine, ir, linalg, scf
from magweld.passes.gpu.cross_thread_reduction import Partials
from magweld.passes.gpu.linalg_structure import Index, LoopNest, inputs_of
from magweld.passes.gpu.structure import thread_mapping
from magweld.passes.gpu.subgroup_reduction import SubgroupReduction
from magweld.passes.gpu.thread_layout import ThreadLayout
from magweld.passes.gpu.thread_slices import strided_subview
from magweld.passes.ir.linalg_builder import iterator_array, map_array
from magweld.passes.ir.utils import operations_of


def build_thread_loop(
    op: Any,
    nest: LoopNest,
    layout: ThreadLayout,
    partials: Partials | SubgroupReduction | None = None,
    order: Sequence[int] | None = None,
) -> None:
    """Build the loop over threads in front of `op`, which is left to be erased.

    Args:
        op: A linalg operation on memrefs, without results.
        nest: Its iteration space.
        layout: How threads share that space.
        partials: Where each thread accumulates, if threads share a reduction, and
            how lanes combine that.
        order: The shared loops, that along which neighbouring threads lie last, where
            it is not the order of the output.
    """
    loops = _order(nest, layout) if order is None else order
    shared = [loop for loop in loops if layout.threads[loop] > 1]
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
                _slice(value, indices, layout, ivs)
                for value, indices in zip(sliced, nest.indices, strict=False)
            ]
            if partials is not None:
                accumulator = (
                    _partial_slice(partials, nest, layout, ivs)
                    if isinstance(partials, Partials)
                    else partials.partial
                )
                neutral = partials.combiner.neutral_constant()
                linalg.fill(neutral, outs=[accumulator])
                operands.append(accumulator)
            clone = op.operation.clone()
            for position, operand in enumerate(operands):
                clone.operands[position] = operand
            _rebase_indices(clone, layout, ivs)
            if nest.has_windows:
                _index_windows(clone, nest, layout)
            if isinstance(partials, SubgroupReduction):
                output = _group_slice(partials, nest, layout, ivs)
                partials.build_combination(output)
            scf.InParallelOp()


def _order(nest: LoopNest, layout: ThreadLayout) -> tuple[int, ...]:
    """Return the loops in the order in which threads are numbered along them.

    Whole elements have the order of the output, whatever order an operation has its
    loops in: who makes a tile and who reads it number its threads alike.
    """
    if any(layout.threads[loop] > 1 for loop in nest.reduction):
        return tuple(range(len(nest.extents)))
    return (*nest.parallel, *nest.reduction)


def _index_windows(clone: Any, nest: LoopNest, layout: ThreadLayout) -> None:
    """Make an operation generic whose windows are those of one thread's slices."""
    loops = len(nest.extents)
    maps = [
        ir.AffineMap.get(loops, 0, [_local(index, layout) for index in operand])
        for operand in nest.indices
    ]
    operands = list(clone.operands)
    inputs = len(operands) - nest.outputs
    with ir.InsertionPoint(clone), clone.location:
        generic = linalg.GenericOp(
            [],
            operands[:inputs],
            operands[inputs:],
            map_array(maps),
            iterator_array(loops, nest.reduction),
        )
    clone.regions[0].blocks[0].append_to(generic.regions[0])
    clone.operation.erase()


def _local(index: Index, layout: ThreadLayout) -> ir.AffineExpr:
    """Return an index in the slice of one thread, whose iterations are counted."""
    if index.loop is not None:
        return ir.AffineDimExpr.get(index.loop)
    constant = index.constant
    expression: ir.AffineExpr = ir.AffineConstantExpr.get(0)
    for loop, factor in index.terms:
        count = layout.threads[loop]
        expression = ir.AffineDimExpr.get(loop) * (factor * count) + expression
        # Slices start where the last thread reads first.
        constant -= max(0, -factor) * (count - 1)
    return expression + constant


def _slice(
    value: ir.Value,
    indices: tuple[Index, ...],
    layout: ThreadLayout,
    ivs: dict[int, ir.Value],
) -> ir.Value:
    """Slice an operand: every T-th element, or what the windows of a thread reach."""
    if not any(loop in ivs for index in indices for loop, _ in index.terms):
        return value
    offsets, sizes, strides = [], [], []
    for index, whole in zip(indices, value.type.shape, strict=True):
        if index.loop is not None:
            offsets.append(ivs.get(index.loop))
            sizes.append(layout.per_thread[index.loop])
            strides.append(layout.threads[index.loop])
            continue
        shared = [(loop, factor) for loop, factor in index.terms if loop in ivs]
        offsets.append(_window_start(shared, layout, ivs))
        spread = (abs(factor) * (layout.threads[loop] - 1) for loop, factor in shared)
        sizes.append(whole - sum(spread))
        strides.append(1)
    return strided_subview(value, offsets, sizes, strides)


def _window_start(
    terms: list[tuple[int, int]], layout: ThreadLayout, ivs: dict[int, ir.Value]
) -> ir.Value | None:
    if not terms:
        return None
    expression: ir.AffineExpr = ir.AffineConstantExpr.get(0)
    for number, (loop, factor) in enumerate(terms):
        thread = ir.AffineDimExpr.get(number)
        from_end = layout.threads[loop] - 1 - thread
        expression += thread * factor if factor > 0 else from_end * -factor
    map_ = ir.AffineMap.get(len(terms), 0, [expression])
    made: ir.Value = affine.AffineApplyOp(map_, [ivs[loop] for loop, _ in terms]).result
    return made


def _partial_slice(
    partials: Partials,
    nest: LoopNest,
    layout: ThreadLayout,
    ivs: dict[int, ir.Value],
) -> ir.Value:
    """Slice what one thread accumulates: its rows, and one element of the others."""
    kept, dropped = nest.output_maps[0], partials.loops
    loops = (*kept, *dropped)
    sizes = [1 if loop is None else layout.per_thread[loop] for loop in kept]
    return strided_subview(
        partials.buffer,
        [None if loop is None else ivs.get(loop) for loop in loops],
        sizes + [1] * len(dropped),
        [1 if loop is None else layout.threads[loop] for loop in loops],
        dropped=len(dropped),
    )


def _group_slice(
    reduction: SubgroupReduction,
    nest: LoopNest,
    layout: ThreadLayout,
    ivs: dict[int, ir.Value],
) -> ir.Value:
    """Slice what a group of lanes writes: its rows, and its slot if it has one."""
    kept = nest.output_maps[0]
    offsets = [None if loop is None else ivs.get(loop) for loop in kept]
    sizes = [1 if loop is None else layout.per_thread[loop] for loop in kept]
    strides = [1 if loop is None else layout.threads[loop] for loop in kept]
    if reduction.groups == 1:
        return strided_subview(reduction.output, offsets, sizes, strides)
    number: ir.AffineExpr = ir.AffineConstantExpr.get(0)
    for place, loop in enumerate(reduction.loops):
        number = number * layout.threads[loop] + ir.AffineDimExpr.get(place)
    group = ir.AffineExpr.get_floor_div(number, reduction.lanes)
    map_ = ir.AffineMap.get(len(reduction.loops), 0, [group])
    slot = affine.AffineApplyOp(map_, [ivs[loop] for loop in reduction.loops]).result
    return strided_subview(
        reduction.output, [*offsets, slot], [*sizes, 1], [*strides, 1], dropped=1
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
