"""Owns how swizzled tiles lie in shared memory, and how `wgmma` is told of them.

From the PTX ISA ("Asynchronous warpgroup level matrix instructions", matrix
descriptors): a matrix in shared memory is made of pieces of eight rows of 128 bytes,
which lie behind each other at multiples of 1024 bytes. Chunk `c` of 16 bytes of row `r`
of a piece lies where chunk `c xor r` would be, so that neither eight rows of one chunk
nor one row of eight chunks have a bank twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from magweld.bindings import affine, arith, ir, memref, nvvm
from magweld.passes.gpu.structure import (
    VECTOR_BYTES,
    buffers_in,
    element_bytes,
    workgroup_space,
)

ROW_BYTES = 128
# Rows of a piece, and chunks of a row.
PIECE = 8
SWIZZLE_ALIGNMENT = ROW_BYTES * PIECE
_FENCE = "#nvvm.proxy_kind<async.shared>", "#nvvm.shared_space<cta>"
# Bytes of an element.
_ELEMENT = 2
# Elements of a row of a piece, and of a chunk.
ROW = ROW_BYTES // _ELEMENT
CHUNK = VECTOR_BYTES // _ELEMENT
# Bits of a descriptor: bytes / 16 from row to row of pieces, and the kind of swizzle.
_LEADING_BIT, _STRIDE_BIT, _SWIZZLE_128 = 16, 32, 1 << 62
_UNIT_BIT = 4


@dataclass(frozen=True)
class SwizzledTile:
    """A ring of tiles of halves whose columns lie in blocks of 64, all rows of each.

    Attributes:
        rows: Of all slots.
        columns: A multiple of 64.
    """

    rows: int
    columns: int

    @staticmethod
    def of(type_: ir.Type) -> SwizzledTile | None:
        """Return the tile that a buffer may be, None for others."""
        kind = ir.MemRefType(type_)
        if len(kind.shape) != 2 or element_bytes(kind.element_type) != _ELEMENT:
            return None
        rows, columns = kind.shape
        fits = rows % PIECE == 0 and columns % ROW == 0
        return SwizzledTile(rows, columns) if fits else None

    @property
    def block_bytes(self) -> int:
        """Distance of blocks of columns."""
        return self.rows * ROW_BYTES

    def descriptor_bits(self, *, across: bool) -> int:
        """Return a descriptor without the place where the matrix begins.

        Args:
            across: Whether rows are steps of the reduction. The matrix then has lines
                in several blocks.
        """
        leading = self.block_bytes if across else VECTOR_BYTES
        bits = leading >> _UNIT_BIT << _LEADING_BIT
        return bits | SWIZZLE_ALIGNMENT >> _UNIT_BIT << _STRIDE_BIT | _SWIZZLE_128

    def step_bytes(self, step: int, *, across: bool) -> int:
        """Return how far in a slot the step of a reduction begins."""
        if across:
            return step * ROW_BYTES
        return step // ROW * self.block_bytes + step % ROW * _ELEMENT

    def line_bytes(self, line: int, *, across: bool) -> int:
        """Return how far in a slot a line begins, a multiple of 64."""
        return line // ROW * self.block_bytes if across else line * ROW_BYTES

    def bytes_before(self, row: int, column: int) -> int:
        """Return how far in a slot a row of a block of columns begins.

        Args:
            row: A multiple of 8.
            column: A multiple of 64.
        """
        return column // ROW * self.block_bytes + row * ROW_BYTES


def in_units(size: int) -> int:
    """Return bytes in the unit of descriptors."""
    return size >> _UNIT_BIT


def aligned_bytes(block_loop: Any) -> int:
    """Return the bytes of all buffers of a block, at multiples of what is swizzled."""
    total = 0
    for buffer in buffers_in(block_loop, workgroup_space()):
        type_ = ir.MemRefType(buffer.memref.type)
        size = math.prod(type_.shape) * element_bytes(type_.element_type)
        total += -(-size // SWIZZLE_ALIGNMENT) * SWIZZLE_ALIGNMENT
    return total


def build_fence() -> None:
    """Build the fence behind what threads write to shared memory.

    `wgmma` and the tensor memory accelerator see it on another way than threads do.
    """
    kind, space = (ir.Attribute.parse(text) for text in _FENCE)
    nvvm.FenceProxyOp(kind, space=space)


def as_index(number: ir.Value | int) -> ir.Value:
    """Return a number as a value, which is built for one that is known."""
    if isinstance(number, int):
        made: ir.Value = arith.ConstantOp(ir.IndexType.get(), number).result
        return made
    return number


def shared_address(view: Any) -> ir.Value:
    """Build the address in shared memory at which a placed buffer begins, as index."""
    start = memref.ExtractAlignedPointerAsIndexOp(view.source).result
    made: ir.Value = arith.AddIOp(start, view.byte_shift).result
    return made


def flat_view(view: Any) -> ir.Value:
    """Build a placed buffer once more, as one row."""
    type_ = ir.MemRefType(view.result.type)
    size = math.prod(type_.shape)
    row = ir.MemRefType.get([size], type_.element_type, memory_space=type_.memory_space)
    made: ir.Value = memref.ViewOp(row, view.source, view.byte_shift, []).result
    return made


def swizzled_place(
    target: ir.Value, inner: int, slot: ir.Value, tile: SwizzledTile
) -> ir.Value:
    """Build the place in a flat tile of an element that begins a chunk.

    Args:
        target: A slice of the slot.
        inner: Elements from where the slice begins to the element, in rows.
        slot: The first row of the slot, a multiple of eight.
        tile: How it lies.
    """
    begin = memref.ExtractStridedMetadataOp(target).results[1]
    first, at = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
    # Of the slot: where threads begin in it is the same in each iteration.
    own = _apply([at - first * tile.columns + inner], [slot, begin])
    row = _unsigned(arith.DivUIOp, own, tile.columns)
    column = _unsigned(arith.RemUIOp, own, tile.columns)
    chunk = _unsigned(arith.RemUIOp, _unsigned(arith.DivUIOp, column, CHUNK), PIECE)
    turned = arith.XOrIOp(chunk, _unsigned(arith.RemUIOp, row, PIECE)).result
    block = _unsigned(arith.DivUIOp, column, ROW)
    dims = [ir.AffineExpr.get_dim(number) for number in range(4)]
    parts = zip(dims, (ROW, ROW, CHUNK, tile.rows * ROW), strict=True)
    total: ir.AffineExpr = ir.AffineConstantExpr.get(0)
    for dim, size in parts:
        total = total + dim * size
    return _apply([total], [slot, row, turned, block])


def _unsigned(op: Any, value: ir.Value, number: int) -> ir.Value:
    made: ir.Value = op(
        value, arith.ConstantOp(ir.IndexType.get(), number).result
    ).result
    return made


def _apply(results: list[ir.AffineExpr], operands: list[ir.Value]) -> ir.Value:
    map_ = ir.AffineMap.get(len(operands), 0, results)
    made: ir.Value = affine.AffineApplyOp(map_, operands).result
    return made
