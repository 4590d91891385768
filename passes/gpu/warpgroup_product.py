"""Owns which products warpgroups compute by `wgmma`, and where their factors lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, memref, nvvm, scf
from magweld.dialects.tile_graph import ASYNC_COPY, FRAGMENT, FragmentAttr
from magweld.passes.gpu.fragment_product import Factor, FragmentProduct
from magweld.passes.gpu.index_divisors import divisor_of
from magweld.passes.gpu.linalg_structure import inputs_of, is_structured, outputs_of
from magweld.passes.gpu.retyped_slices import is_sliced
from magweld.passes.gpu.row_alignment import row_alignment
from magweld.passes.gpu.structure import (
    VECTOR_BYTES,
    VECTOR_LOOP,
    element_bytes,
    is_in_space,
    storage_of,
    workgroup_space,
)
from magweld.passes.gpu.swizzled_tiles import PIECE, ROW, SwizzledTile
from magweld.passes.ir.utils import users_of
from magweld.passes.tiling.warpgroups import MOST_COLUMNS, WARPS

_VIEWS = frozenset(
    {"memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.subview"}
)
_FAMILY = "llvm.nvvm.mma.m16n8k16."


@dataclass(frozen=True)
class WarpgroupFactor:
    """A factor in a slot of a swizzled ring.

    Attributes:
        ring: The buffer: an allocation, or the view that places it.
        tile: How it lies.
        first: The first row of the slot.
        across: Whether its rows are steps of the reduction.
    """

    ring: ir.Value
    tile: SwizzledTile
    first: ir.Value | int
    across: bool

    @staticmethod
    def of(factor: Factor) -> WarpgroupFactor | None:
        """Return what a factor is, None where `wgmma` cannot read it."""
        slot = factor.tile
        while not isinstance(slot, ir.BlockArgument) and isinstance(
            slot.owner.opview, memref.ExpandShapeOp
        ):
            slot = slot.owner.operands[0]
        found = RingRows.of(slot)
        if found is None or found.rows != slot.type.shape[0]:
            return None
        across = factor.step == 0
        lines = len(factor.tile.type.shape) - 1 - len(factor.side.extents)
        if factor.line != (1 if across else 0) or lines != 1:
            return None
        return WarpgroupFactor(found.ring, found.tile, found.first, across)


@dataclass(frozen=True)
class RingRows:
    """Whole rows of a ring that may be swizzled.

    Attributes:
        ring: The buffer: an allocation, or the view that places it.
        tile: How it lies.
        first: The first of the rows, a multiple of eight.
        rows: How many there are.
    """

    ring: ir.Value
    tile: SwizzledTile
    first: ir.Value | int
    rows: int

    @staticmethod
    def of(value: ir.Value) -> RingRows | None:
        """Return the rows that a memref is a part of, None where there are none."""
        slot = None
        while not isinstance(value, ir.BlockArgument):
            op = value.owner.opview
            if isinstance(op, memref.AllocOp | memref.ViewOp):
                tile = SwizzledTile.of(value.type)
                is_slice = slot is not None and slot.source == value
                return _rows_of(slot, value, tile) if is_slice and tile else None
            if not isinstance(op, memref.SubViewOp | memref.ExpandShapeOp):
                return None
            slot = op if isinstance(op, memref.SubViewOp) else slot
            value = op.operands[0]
        return None


def _rows_of(slot: Any, ring: ir.Value, tile: SwizzledTile) -> RingRows | None:
    """Return what of a ring a slice is, None for parts of rows, or of eight rows."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    start, column = slot.static_offsets
    rows, columns = slot.static_sizes
    is_whole = column == 0 and columns == tile.columns and rows % PIECE == 0
    first = slot.offsets[0] if start == marker else start
    divisor = divisor_of(first) if start == marker else start
    if not is_whole or divisor % PIECE or set(slot.static_strides) != {1}:
        return None
    return RingRows(ring, tile, first, rows)


@dataclass(frozen=True)
class WarpgroupProduct:
    """A product that warpgroups compute.

    Attributes:
        product: The product.
        rows: The factor of the rows.
        columns: That of the columns.
    """

    product: FragmentProduct
    rows: WarpgroupFactor
    columns: WarpgroupFactor

    @staticmethod
    def of(product: FragmentProduct) -> WarpgroupProduct | None:
        """Return a product as warpgroups compute it; None where they cannot."""
        left, right = product.factors()
        found = WarpgroupFactor.of(left), WarpgroupFactor.of(right)
        _, columns = product.tiles
        wide = columns * product.instruction.columns.size
        is_shared = left.subgroups % WARPS == 0 and right.subgroups == 1
        steps = left.tile.type.shape[left.step]
        fits = steps % product.instruction.reduction == 0 and wide <= MOST_COLUMNS
        has_lanes = product.instruction.name.startswith(_FAMILY)
        if not (has_lanes and is_shared and fits) or found[0] is None:
            return None
        # Blocks of columns of the second factor are read whole.
        if found[1] is None or (found[1].across and wide % ROW):
            return None
        return WarpgroupProduct(product, found[0], found[1])

    @property
    def warpgroups(self) -> int:
        """How many warpgroups share the rows."""
        return self.product.factors()[0].subgroups // WARPS


def warpgroups_of(op: Any) -> int:
    """Return how many warpgroups have whole rows of a product, 0 where parts of them.

    It is a product that subgroups share.
    """
    if FRAGMENT not in op.operation.attributes:
        return 0
    rows, columns = FragmentAttr(op.operation.attributes[FRAGMENT]).subgroups
    is_whole = int(rows) % WARPS == 0 and int(columns) == 1
    return int(rows) // WARPS if is_whole else 0


def is_copied_in_steps(op: Any) -> bool:
    """Tell whether a loop copies rows of 64 halves of arguments and multiplies them."""
    inside = isinstance(op.operation.parent.opview, scf.ForOp)
    return inside and all(map(_is_copied, inputs_of(op)))


def _is_copied(factor: ir.Value) -> bool:
    tile = storage_of(factor)
    if SwizzledTile.of(tile.type) is None:
        return False
    users = list(_users_behind(tile))
    if not all(map(is_structured, users)):
        return False
    writers = [op for op in users if tile in map(storage_of, outputs_of(op))]
    if len(writers) != 1 or len(inputs_of(writers[0])) != 1:
        return False
    (source,) = inputs_of(writers[0])
    return isinstance(source.type, ir.MemRefType) and isinstance(
        storage_of(source), ir.BlockArgument
    )


def copies_to(ring: ir.Value, product: Any) -> list[Any] | None:
    """Return the copies that fill a ring that a product alone reads.

    None where anything else uses it, or where it is not filled by asynchronous copies
    of whole chunks.
    """
    is_ring = isinstance(ring.owner.opview, memref.AllocOp) and is_sliced(ring)
    if not is_ring or not is_in_space(ring, workgroup_space()):
        return None
    found = []
    for op in _users_behind(ring):
        if op.operation == product.operation:
            continue
        if not is_structured(op):
            return None
        if ASYNC_COPY not in op.operation.attributes or not _has_chunks(op):
            return None
        if storage_of(outputs_of(op)[0]) != ring:
            return None
        found.append(op)
    return found


def _users_behind(value: ir.Value) -> Iterator[Any]:
    """Yield the operations on a buffer and its views that are no views."""
    for user in users_of(value):
        if user.operation.name in _VIEWS:
            yield from _users_behind(user.result)
        else:
            yield user


def _has_chunks(op: Any) -> bool:
    """Tell whether a copy is one of whole chunks of 16 bytes, by one thread each."""
    (source,), (target,) = inputs_of(op), outputs_of(op)
    if VECTOR_LOOP not in op.operation.attributes:
        return False
    size = element_bytes(source.type.element_type)
    width = ir.MemRefType(target.type).shape[-1] * size
    vector = ir.IntegerAttr(op.operation.attributes[VECTOR_LOOP]).value
    is_last = vector == len(target.type.shape) - 1
    ends = (row_alignment(source), row_alignment(target))
    return is_last and width % VECTOR_BYTES == 0 and set(ends) == {VECTOR_BYTES}


def wait_in(op: Any) -> nvvm.CpAsyncWaitGroupOp | None:
    """Return the wait of the loop around a product that copies ahead, None without."""
    parent = op.operation.parent
    while parent is not None:
        if isinstance(parent.opview, scf.ForOp):
            body = parent.opview.body.operations
            waits = (one for one in body if isinstance(one, nvvm.CpAsyncWaitGroupOp))
            return next(waits, None)
        parent = parent.parent
    return None
