"""Owns pad-shared-tiles: rows of shared tiles lie so that banks do not conflict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from magweld.bindings import affine, ir, memref, scf
from magweld.dialects.tile_graph import FRAGMENT, SWIZZLED
from magweld.passes.gpu.bank_conflicts import ThreadAccess, row_padding
from magweld.passes.gpu.fragment_product import Factor, FragmentProduct, in_parts
from magweld.passes.gpu.index_divisors import divisor_of
from magweld.passes.gpu.linalg_structure import (
    linalg_operations_in,
    linear_index,
    outputs_of,
)
from magweld.passes.gpu.matrix_loads import (
    MATRIX_SIZE,
    MatrixLoad,
    is_transposed,
    matrix_loads,
)
from magweld.passes.gpu.retyped_slices import is_sliced
from magweld.passes.gpu.row_alignment import offset_divisors
from magweld.passes.gpu.stage_ring import StepLoop
from magweld.passes.gpu.structure import (
    PADDING,
    VECTOR_BYTES,
    block_loop_of,
    buffers_in,
    element_bytes,
    kernels_of,
    phases_in,
    storage_of,
    workgroup_space,
)
from magweld.passes.gpu.thread_slices import thread_loop_around
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import groups_of


@dataclass(frozen=True)
class PadSharedTiles(Pass):
    """Choose how many elements lie unused behind each row of a tile.

        memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
            =>   memref.alloc() {magweld.padding = 4 : i64} : ...

    Threads that walk down a column of 32 words meet in one bank. The padding is the one
    with which the accesses of all thread loops, as often as these run, take the fewest
    passes; place-shared-memory makes the room. Neighbours in the slice of a thread are
    accessed at once, up to 16 bytes, as far as rows remain aligned: of paddings with as
    many passes, the one with the fewest accesses is taken. Factors of matrix
    instructions are accessed as their lanes load them; rows that `ldmatrix` loads stay
    aligned to 16 bytes. Tiles that are used otherwise than by slices in thread loops,
    of the same dimensions or of parts of them, are left as they are, and so are tiles
    whose rows are swizzled.
    """

    name: ClassVar[str] = "pad-shared-tiles"

    subgroup: Annotated[int, "threads that execute in lockstep"] = 32

    def run(self, module: Any) -> None:
        """Choose the paddings of all kernels."""
        i64 = ir.IntegerType.get_signless(64)
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            accesses = _accesses(loop)
            for buffer in buffers_in(loop, workgroup_space()):
                type_ = buffer.memref.type
                swizzled = SWIZZLED in buffer.operation.attributes
                if swizzled or not type_.shape or not is_sliced(buffer.memref):
                    continue
                padding = row_padding(
                    type_.shape,
                    element_bytes(type_.element_type),
                    accesses.get(buffer.memref, []),
                    self.subgroup,
                )
                if padding:
                    attribute = ir.IntegerAttr.get(i64, padding)
                    buffer.operation.attributes[PADDING] = attribute


def _accesses(block_loop: Any) -> dict[Any, list[ThreadAccess]]:
    """Return how the thread loops of a block access each buffer."""
    found: dict[Any, list[ThreadAccess]] = {}
    for op in phases_in(block_loop.body):
        for inner in linalg_operations_in(op):
            thread_loop = thread_loop_around(inner)
            if thread_loop is not None:
                rounds = _rounds_of(thread_loop, block_loop)
                for value, access in _accesses_of(inner, thread_loop):
                    if access is not None:
                        often = replace(access, times=access.times * rounds)
                        found.setdefault(storage_of(value), []).append(often)
    return found


def _rounds_of(thread_loop: Any, block_loop: Any) -> int:
    """Return how often a block runs a thread loop, where loops around it say so."""
    rounds, inner = 1, thread_loop.operation.parent
    while inner != block_loop.operation:
        if isinstance(inner.opview, scf.ForOp):
            loop = StepLoop.of(inner.opview)
            rounds *= 1 if loop is None else len(loop.indices)
        inner = inner.parent
    return rounds


def _accesses_of(
    op: Any, thread_loop: Any
) -> Iterator[tuple[ir.Value, ThreadAccess | None]]:
    """Yield what an operation in a thread loop accesses, and how."""
    sliced = list(op.operands)
    if FRAGMENT in op.operation.attributes:
        # The lanes load other elements than those of their slices.
        product, sliced = FragmentProduct(op), outputs_of(op)
        for factor, count in zip(product.factors(), product.tiles, strict=True):
            yield factor.tile, _lanes_access(product, factor, count, thread_loop)
    for value in sliced:
        yield value, _access(value, thread_loop)


def _access(value: ir.Value, thread_loop: Any) -> ThreadAccess | None:
    """Return the access by a slice of a buffer, None for other values."""
    if not isinstance(value.type, ir.MemRefType):
        return None
    loops = list(thread_loop.induction_variables)
    still = _Steps((0,) * len(loops), 0)
    steps = _in_storage(value, [still] * len(value.type.shape), loops)
    if steps is None:
        return None
    return ThreadAccess(
        tuple(thread_loop.staticUpperBound),
        tuple(step.moves for step in steps),
        math.prod(value.type.shape),
        _aligned(_neighbours(value), steps),
    )


def _lanes_access(
    product: FragmentProduct, factor: Factor, count: int, thread_loop: Any
) -> ThreadAccess | None:
    """Return how the lanes of a matrix instruction load one of its factors.

    Args:
        product: The product.
        factor: The factor.
        count: Pieces of it that a subgroup has.
        thread_loop: The loop around the product.

    Returns:
        The access; None where the tile is a buffer under another shape.
    """
    one, tile = product.instruction, factor.tile
    extents = factor.side.extents
    # Lanes move along the pieces, the parts of a line, and the steps.
    dimensions = [*range(factor.line, factor.line + 1 + len(extents)), factor.step]
    steps = [
        _Steps(tuple(int(d == moved) for moved in dimensions), 0)
        for d in range(len(tile.type.shape))
    ]
    found = _in_storage(tile, steps, [])
    if found is None:
        return None
    trips = tuple(thread_loop.staticUpperBound)
    moves = tuple(step.moves for step in found)
    steps_of_product = tile.type.shape[factor.step] // one.reduction
    if factor.by_matrices:
        # All loads are alike, but that of what is left of a step.
        loads = matrix_loads(factor.positions, count)
        times = steps_of_product * len(loads) * MATRIX_SIZE
        lanes = tuple(_rows_of(loads[0], factor))
        return ThreadAccess(trips, moves, times, MATRIX_SIZE, lanes, is_whole=True)
    lanes = tuple(
        _place(0, *factor.positions[0](ir.AffineConstantExpr.get(lane)), factor)
        for lane in range(one.subgroup)
    )
    times = steps_of_product * count * len(factor.positions) * one.width
    is_row = found[-1].moves[-1] == 1
    width = math.gcd(one.width, found[-1].others) if is_row else 1
    return ThreadAccess(trips, moves, times, width, lanes)


def _rows_of(load: MatrixLoad, factor: Factor) -> Iterator[tuple[int, ...]]:
    """Yield where the rows begin that the lanes of `ldmatrix` name."""
    for number in range(len(load.matrices) * MATRIX_SIZE):
        lane = ir.AffineConstantExpr.get(number)
        piece, line, step = load.row(lane, is_transposed(factor))
        along = ir.AffineConstantExpr(piece).value * factor.subgroups
        yield _place(along, line, step, factor)


def _place(
    piece: int, line: ir.AffineExpr, step: ir.AffineExpr, factor: Factor
) -> tuple[int, ...]:
    """Return a place in a factor: piece, parts of the line, step."""
    parts = (*in_parts(line, factor.side.extents), step)
    return piece, *(ir.AffineConstantExpr(part).value for part in parts)


def _in_storage(
    value: ir.Value, steps: list[_Steps], loops: Sequence[ir.Value]
) -> list[_Steps] | None:
    """Return steps in a view as steps in the buffer that it is a view of.

    None for a buffer under another shape: it has no padding, and its slices say nothing
    of it.
    """
    storage = storage_of(value)
    while value != storage:
        view = value.owner.opview
        if isinstance(view, memref.SubViewOp):
            steps = _before_slice(view, steps, loops)
        elif isinstance(view, memref.ExpandShapeOp):
            steps = _before_split(view, steps)
        else:
            return None
        value = view.operands[0]
    return steps


def _aligned(width: int, steps: Sequence[_Steps]) -> int:
    """Return how many of neighbours in a row lie in one aligned piece."""
    return math.gcd(width, steps[-1].others, *steps[-1].moves) if steps else width


def _neighbours(value: ir.Value) -> int:
    """Return how many elements of a row a thread may access at once."""
    type_ = ir.MemRefType(value.type)
    strides, _ = type_.get_strides_and_offset()
    if not strides or strides[-1] != 1:
        return 1
    widest = VECTOR_BYTES // element_bytes(type_.element_type)
    return math.gcd(widest, type_.shape[-1])


@dataclass(frozen=True)
class _Steps:
    """Where a slice begins along a dimension.

    Attributes:
        moves: How far each dimension of the thread loop moves it.
        others: What divides the distances that anything else moves it; 0 for none.
    """

    moves: tuple[int, ...]
    others: int

    def times(self, factor: int) -> _Steps:
        """Return the steps in a dimension of which each step is so many."""
        return _Steps(tuple(m * factor for m in self.moves), self.others * factor)

    def plus(self, other: _Steps) -> _Steps:
        """Return the steps of both."""
        moves = (a + b for a, b in zip(self.moves, other.moves, strict=True))
        return _Steps(tuple(moves), math.gcd(self.others, other.others))


def _before_slice(
    view: Any, steps: list[_Steps], loops: Sequence[ir.Value]
) -> list[_Steps]:
    """Return the steps in what a slice was taken of; it may lack the last ones."""
    lacking = len(view.static_offsets) - len(steps)
    still = _Steps((0,) * len(steps[0].moves) if steps else (0,) * len(loops), 0)
    steps = steps + [still] * lacking
    starts = zip(_offsets(view), offset_divisors(view), strict=True)
    return [
        step.times(stride).plus(_start(offset, divisor, loops, len(step.moves)))
        for step, stride, (offset, divisor) in zip(
            steps, view.static_strides, starts, strict=True
        )
    ]


def _before_split(view: Any, steps: list[_Steps]) -> list[_Steps]:
    """Return the steps in a buffer whose dimensions were split into parts."""
    shape = list(view.result.type.shape)
    found = []
    for parts in groups_of(view):
        inner = [math.prod(shape[p] for p in parts[i + 1 :]) for i in range(len(parts))]
        scaled = [steps[p].times(size) for p, size in zip(parts, inner, strict=True)]
        whole = scaled[0]
        for part in scaled[1:]:
            whole = whole.plus(part)
        found.append(whole)
    return found


def _start(
    offset: ir.Value | None, divisor: int, loops: Sequence[ir.Value], count: int
) -> _Steps:
    """Return where a slice begins: as threads move it, and the rest by its divisor."""
    moves = [0] * count
    sum_ = _sum_of(offset)
    if sum_ is None:
        return _Steps(tuple(moves), divisor)
    terms, others = sum_
    for moved, factor in terms:
        if moved in loops:
            moves[loops.index(moved)] += factor
        else:
            others = math.gcd(others, divisor_of(moved) * factor)
    return _Steps(tuple(moves), others)


def _offsets(subview: Any) -> Iterator[ir.Value | None]:
    """Yield the offset of each dimension, None for numbers."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = iter(subview.offsets)
    for offset in subview.static_offsets:
        yield next(dynamic) if offset == marker else None


def _sum_of(offset: ir.Value | None) -> tuple[list[tuple[ir.Value, int]], int] | None:
    """Return an offset as values with their factors and a number, None for others."""
    if offset is None:
        return None
    if isinstance(offset, ir.BlockArgument):
        return [(offset, 1)], 0
    apply = offset.owner.opview
    if not isinstance(apply, affine.AffineApplyOp):
        return None
    index = linear_index(apply.map.value.results[0])
    if index is None:
        return None
    return [(apply.operands[i], factor) for i, factor in index.terms], index.constant
