"""Owns copy-by-vectors: tiles in shared memory are filled in pieces of 16 bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.passes.gpu.expanded_loops import split_loop
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    loop_nest_of,
    operations_on_buffers,
    outputs_of,
)
from magweld.passes.gpu.row_alignment import has_contiguous_rows, row_alignment
from magweld.passes.gpu.structure import (
    VECTOR_BYTES,
    block_loop_of,
    element_bytes,
    is_in_space,
    kernels_of,
    storage_of,
    workgroup_space,
)
from magweld.passes.gpu.thread_layout import coalesced_layout
from magweld.passes.gpu.tile_readers import is_read_by_others, readers_of
from magweld.passes.infrastructure.base import Pass


@dataclass(frozen=True)
class CopyByVectors(Pass):
    """Let each thread copy pieces of 16 bytes of what products or transposes read.

        linalg.copy ins(%x : memref<64x32xf32, strided<[48, 1], offset: ?>>)
                    outs(%t : memref<64x32xf32, #gpu.address_space<workgroup>>)
            =>   the copy of memref<64x8x4xf32, ...>, `magweld.vector_loop = 2`

    The tile stays as it is for its readers. A copy from global memory to a tile in
    workgroup memory is split if a product or windows read the tile, or others across
    its rows, so that it cannot be kept in registers; if the elements of a row lie side
    by side at both ends; if all rows begin at multiples of a piece at both ends
    (`row_alignment.py`); and if rows are whole pieces. Pieces are of 16 bytes, or of 8,
    4 or 2 where a thread has no fewer accesses with wider ones or these are not
    aligned. Other copies are left to map-tiles-to-threads, one element at a time.
    """

    name: ClassVar[str] = "copy-by-vectors"

    threads: Annotated[int, "threads of a block"] = 256
    subgroup: Annotated[int, "threads that execute in lockstep"] = 32

    def run(self, module: Any) -> None:
        """Split the copies of all kernels."""
        for kernel in kernels_of(module):
            every = operations_on_buffers(block_loop_of(kernel))
            for op in filter(_is_staged_operand, every):
                width = self._width(op)
                if width > 1:
                    split_loop(op, len(loop_nest_of(op).extents) - 1, width, {})

    def _width(self, op: Any) -> int:
        """Return the elements of a piece: those with the fewest accesses a thread."""
        *outer, row = loop_nest_of(op).extents

        def accesses(width: int) -> int:
            pieces = (*outer, row // width)
            layout = coalesced_layout(pieces, self.threads, self.subgroup)
            return math.prod(layout.per_thread)

        return min((1, *_fitting_widths(op, row)), key=lambda w: (accesses(w), -w))


def _fitting_widths(op: Any, row: int) -> Iterator[int]:
    """Yield the elements of pieces that are aligned at both ends of a copy."""
    sizes = [element_bytes(value.type.element_type) for value in op.operands]
    alignment = min(map(row_alignment, op.operands))
    width = 2
    while width * min(sizes) <= VECTOR_BYTES:
        aligned = alignment % min(VECTOR_BYTES, width * max(sizes)) == 0
        if aligned and row % width == 0:
            yield width
        width *= 2


def _is_staged_operand(op: Any) -> bool:
    """Tell whether `op` copies rows from global memory that threads read otherwise."""
    if not isinstance(op, linalg.CopyOp):
        return False
    (source,), (target,) = inputs_of(op), outputs_of(op)
    space = workgroup_space()
    if is_in_space(source, space) or not is_in_space(target, space):
        return False
    storage = storage_of(target)
    return (
        all(map(has_contiguous_rows, (source, target)))
        and not isinstance(storage, ir.BlockArgument)
        and any(is_read_by_others(op, value) for op, value in readers_of(storage))
    )
