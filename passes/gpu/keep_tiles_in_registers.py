"""Owns keep-tiles-in-registers: tiles that no two threads share become private."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir, memref
from magweld.dialects.tile_graph import SUBGROUP_REDUCTION
from magweld.passes.gpu.linalg_structure import is_structured, outputs_of
from magweld.passes.gpu.private_sums import sums_of, write_once
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
from magweld.passes.gpu.warpgroup_product import warpgroups_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import users_of
from magweld.passes.tiling.matrix_units import MOST_SUMS
from magweld.passes.tiling.warpgroups import MOST_SUMS as MOST_OF_WARPGROUPS


@dataclass(frozen=True)
class KeepTilesInRegisters(Pass):
    """Move tiles to registers where every thread uses only what it wrote itself.

    A `memref.alloc` in workgroup memory of which all thread loops take the same
    slice, no element of it belonging to two threads, becomes a `memref.alloca` of
    the slice's shape in `#gpu.address_space<private>` at the start of the block. So
    an accumulator stays in registers over the reduction loop and up to the
    operations that follow. Results that lanes combine are kept likewise: each of the
    lanes has its own copy of them. Sums that threads make of slices of their own, and
    that others read in another way behind them, are made in registers and written to
    the buffer once. Larger slices than `elements` stay shared, but for sums of products
    that warpgroups can share: these have no other place.
    """

    name: ClassVar[str] = "keep-tiles-in-registers"

    elements: Annotated[int, "largest slice of one thread that is moved"] = MOST_SUMS
    warpgroups: Annotated[bool, "whether four subgroups compute together"] = False

    def run(self, module: Any) -> None:
        """Move the tiles of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            for buffer in buffers_in(loop, workgroup_space()):
                part = _common_slice(buffer)
                sums = sums_of(buffer) if part is None else None
                found = part or sums
                if found is None or _elements(found) > self._most(buffer):
                    continue
                with ir.InsertionPoint.at_block_begin(loop.body), buffer.location:
                    registers = _registers(buffer, found)
                if sums is not None:
                    write_once(buffer, sums, registers)
                else:
                    _replace(buffer, registers)

    def _most(self, buffer: Any) -> int:
        """Return how large the slice of a buffer may be."""
        if self.warpgroups and any(map(warpgroups_of, _users_of_slices(buffer))):
            return max(self.elements, MOST_OF_WARPGROUPS)
        return self.elements


def _users_of_slices(buffer: Any) -> Iterator[Any]:
    for subview in users_of(buffer.memref):
        yield from (op for result in subview.results for op in users_of(result))


def _common_slice(buffer: Any) -> ThreadSlice | None:
    """Return the slice that all threads take of a buffer, None if they differ."""
    slices: set[ThreadSlice] = set()
    for subview in users_of(buffer.memref):
        loop = thread_loop_around(subview)
        if loop is None or not isinstance(subview, memref.SubViewOp):
            return None
        part = thread_slice_of(subview.result, loop)
        if part is None or part.base != buffer.memref:
            return None
        if not part.is_disjoint and not _is_written_by_lanes(subview.result, part):
            return None
        if len(subview.result.type.shape) != len(part.dimensions):
            return None
        slices.add(part)
    return slices.pop() if len(slices) == 1 else None


def _is_written_by_lanes(value: ir.Value, part: ThreadSlice) -> bool:
    """Tell whether all threads of a slice know what is written to it, if anything is.

    They are the lanes that combine: those along the last loops.
    """
    used = {d.loop for d in part.dimensions}
    shared = [loop for loop in range(len(part.trips)) if loop not in used]
    first = len(part.trips) - len(shared)
    if shared != list(range(first, len(part.trips))):
        return False
    threads = math.prod(part.trips[first:])
    return part.has_distinct_rows and all(
        is_structured(op)
        and (value not in outputs_of(op) or _combining_lanes(op) == threads)
        for op in users_of(value)
    )


def _combining_lanes(op: Any) -> int:
    attributes = op.operation.attributes
    if SUBGROUP_REDUCTION not in attributes:
        return 1
    lanes: int = ir.IntegerAttr(attributes[SUBGROUP_REDUCTION]).value
    return lanes


def _elements(part: ThreadSlice) -> int:
    return math.prod(d.size for d in part.dimensions)


def _registers(buffer: Any, part: ThreadSlice) -> ir.Value:
    """Return private memory for a slice."""
    type_ = ir.MemRefType.get(
        [d.size for d in part.dimensions],
        buffer.memref.type.element_type,
        memory_space=private_space(),
    )
    # At the start of the block: an alloca in a loop would grow the stack.
    registers: ir.Value = memref.AllocaOp(type_, [], []).memref
    return registers


def _replace(buffer: Any, registers: ir.Value) -> None:
    for subview in users_of(buffer.memref):
        subview.result.replace_all_uses_with(registers)
        subview.erase()
    buffer.erase()
