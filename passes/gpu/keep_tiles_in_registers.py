"""Owns keep-tiles-in-registers: tiles that no two threads share become private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir, memref
from magweld.passes.gpu.structure import (
    block_loop_of,
    buffers_in,
    kernels_of,
    private_space,
    workgroup_space,
)
from magweld.passes.gpu.thread_slices import (
    ThreadSlice,
    thread_loop_around,
    thread_slice_of,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import users_of


@dataclass(frozen=True)
class KeepTilesInRegisters(Pass):
    """Move tiles to registers where every thread uses only what it wrote itself.

    A `memref.alloc` in workgroup memory of which all thread loops take the same
    slice, no element of it belonging to two threads, becomes a `memref.alloca` of
    the slice's shape in `#gpu.address_space<private>` at the start of the block. So
    an accumulator stays in registers over the reduction loop and up to the
    operations that follow. Larger slices than `elements` stay shared.
    """

    name: ClassVar[str] = "keep-tiles-in-registers"

    elements: Annotated[int, "largest slice of one thread that is moved"] = 64

    def run(self, module: Any) -> None:
        """Move the tiles of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            for buffer in buffers_in(loop, workgroup_space()):
                part = _common_slice(buffer)
                if part is None or _elements(part) > self.elements:
                    continue
                with ir.InsertionPoint.at_block_begin(loop.body), buffer.location:
                    _replace(buffer, part)


def _common_slice(buffer: Any) -> ThreadSlice | None:
    """Return the slice that all threads take of a buffer, None if they differ."""
    slices: set[ThreadSlice] = set()
    for subview in users_of(buffer.memref):
        loop = thread_loop_around(subview)
        if loop is None or not isinstance(subview, memref.SubViewOp):
            return None
        part = thread_slice_of(subview.result, loop)
        if part is None or part.base != buffer.memref or not part.is_disjoint:
            return None
        if len(subview.result.type.shape) != len(part.dimensions):
            return None
        slices.add(part)
    return slices.pop() if len(slices) == 1 else None


def _elements(part: ThreadSlice) -> int:
    return math.prod(d.size for d in part.dimensions)


def _replace(buffer: Any, part: ThreadSlice) -> None:
    type_ = ir.MemRefType.get(
        [d.size for d in part.dimensions],
        buffer.memref.type.element_type,
        memory_space=private_space(),
    )
    # At the start of the block: an alloca in a loop would grow the stack.
    registers = memref.AllocaOp(type_, [], []).memref
    for subview in users_of(buffer.memref):
        subview.result.replace_all_uses_with(registers)
        subview.erase()
    buffer.erase()
