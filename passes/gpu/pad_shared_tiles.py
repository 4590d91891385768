"""Owns pad-shared-tiles: rows of shared tiles lie so that banks do not conflict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import affine, ir, memref
from magweld.passes.gpu.bank_conflicts import ThreadAccess, row_padding
from magweld.passes.gpu.linalg_structure import (
    is_structured,
    linalg_operations_in,
    linear_index,
)
from magweld.passes.gpu.structure import (
    PADDING,
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
from magweld.passes.ir.utils import users_of


@dataclass(frozen=True)
class PadSharedTiles(Pass):
    """Choose how many elements lie unused behind each row of a tile.

        memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
            =>   memref.alloc() {magweld.padding = 1 : i64} : ...

    Threads that walk down a column of 32 words meet in one bank. The padding is the one
    with which the accesses of all thread loops take the fewest passes; place-shared-
    memory makes the room. Tiles that are used otherwise than by slices in thread loops
    are left as they are.
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
                if not type_.shape or not _is_sliced(buffer.memref):
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


def _is_sliced(value: ir.Value) -> bool:
    """Tell whether a buffer is used by linalg and slices of the same dimensions."""
    for user in users_of(value):
        if isinstance(user, memref.SubViewOp):
            kept = list(user.result.type.shape)
            if kept != list(user.static_sizes)[: len(kept)]:
                return False
            if not _is_sliced(user.result):
                return False
        elif not is_structured(user):
            return False
    return True


def _accesses(block_loop: Any) -> dict[Any, list[ThreadAccess]]:
    """Return how the thread loops of a block access each buffer."""
    found: dict[Any, list[ThreadAccess]] = {}
    for op in phases_in(block_loop.body):
        for inner in linalg_operations_in(op):
            thread_loop = thread_loop_around(inner)
            for value in inner.operands if thread_loop is not None else ():
                access = _access(value, thread_loop)
                if access is not None:
                    found.setdefault(storage_of(value), []).append(access)
    return found


def _access(value: ir.Value, thread_loop: Any) -> ThreadAccess | None:
    """Return the access by a slice of a buffer, None for other values."""
    if not isinstance(value.type, ir.MemRefType):
        return None
    storage, times = storage_of(value), math.prod(value.type.shape)
    loops = list(thread_loop.induction_variables)
    moves = [[0] * len(loops) for _ in storage.type.shape]
    while value != storage:
        subview = value.owner.opview
        is_slice = isinstance(subview, memref.SubViewOp)
        # A buffer under another shape has no padding: its slices say nothing of it.
        if not is_slice or len(subview.static_offsets) > len(moves):
            return None
        for dimension, offset in enumerate(_offsets(subview)):
            for moved, factor in _terms(offset):
                if moved in loops:
                    moves[dimension][loops.index(moved)] += factor
        value = subview.source
    trips = tuple(thread_loop.staticUpperBound)
    return ThreadAccess(trips, tuple(map(tuple, moves)), times)


def _offsets(subview: Any) -> Iterator[ir.Value | None]:
    """Yield the offset of each dimension, None for numbers."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = iter(subview.offsets)
    for offset in subview.static_offsets:
        yield next(dynamic) if offset == marker else None


def _terms(offset: ir.Value | None) -> Iterator[tuple[ir.Value, int]]:
    """Yield the values of which an offset is a sum, with their factors."""
    if offset is None:
        return
    if isinstance(offset, ir.BlockArgument):
        yield offset, 1
    elif isinstance(offset.owner.opview, affine.AffineApplyOp):
        apply = offset.owner.opview
        expression = apply.map.value.results[0]
        index = linear_index(expression)
        for position, factor in index.terms if index else ():
            yield apply.operands[position], factor
