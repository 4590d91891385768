"""Owns place-shared-memory: buffers of a block get offsets in one shared buffer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import arith, gpu, ir, memref, scf
from magweld.dialects.tile_graph import SWIZZLED
from magweld.passes.gpu.retyped_slices import retype_slices
from magweld.passes.gpu.structure import (
    PADDING,
    SHARED_ALIGNMENT,
    block_loop_of,
    buffers_in,
    element_bytes,
    kernels_of,
    phases_in,
    storage_of,
    workgroup_space,
)
from magweld.passes.gpu.swizzled_tiles import SWIZZLE_ALIGNMENT
from magweld.passes.gpu.thread_slices import strided_subview
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error
from magweld.passes.tiling.packing import Buffer, pack

SHARED_BYTES = "magweld.shared_bytes"


@dataclass(frozen=True)
class PlaceSharedMemory(Pass):
    """Place all workgroup buffers of a block in one buffer.

    Every `memref.alloc` in workgroup memory becomes a `memref.view` of
    `gpu.dynamic_shared_memory` at an offset of its own: buffers whose lifetimes
    do not overlap share bytes. Rows lie `magweld.padding` elements further apart, where
    all of it has room. Offsets are multiples of 16 bytes, or of 1024 where a buffer is
    swizzled. The size is left on the kernel as
    `magweld.shared_bytes`. A kernel that needs more than `capacity` is an error.
    """

    name: ClassVar[str] = "place-shared-memory"

    capacity: Annotated[int, "bytes of shared memory that a block may use"] = 49152

    def run(self, module: Any) -> None:
        """Place the buffers of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            allocations = list(buffers_in(loop, workgroup_space()))
            alignment = _alignment(allocations)
            buffers = _sized(loop, allocations)
            packing = pack(buffers, alignment)
            if packing.size > self.capacity:
                for op in allocations:
                    if PADDING in op.operation.attributes:
                        del op.operation.attributes[PADDING]
                buffers = _sized(loop, allocations)
                packing = pack(buffers, alignment)
            if packing.size > self.capacity:
                largest = max(buffer.size for buffer in buffers)
                raise located_error(
                    loop,
                    f"expected tiles of at most {self.capacity} bytes of shared "
                    f"memory, got {packing.size} bytes in {len(buffers)} buffers, the "
                    f"largest of {largest}",
                )
            i64 = ir.IntegerType.get_signless(64)
            kernel.attributes[SHARED_BYTES] = ir.IntegerAttr.get(i64, packing.size)
            if allocations:
                with loop.location:
                    _replace(loop, allocations, packing.offsets)


def _alignment(allocations: Sequence[Any]) -> int:
    """Return what offsets are multiples of: one for all buffers of a block."""
    swizzled = any(SWIZZLED in op.operation.attributes for op in allocations)
    return SWIZZLE_ALIGNMENT if swizzled else SHARED_ALIGNMENT


def _sized(loop: Any, allocations: Sequence[Any]) -> list[Buffer]:
    spans = _Spans(loop)
    found = []
    for op in allocations:
        type_ = _padded_type(op)
        size = math.prod(type_.shape) * element_bytes(type_.element_type)
        found.append(Buffer(size, *spans.of_buffer(op)))
    return found


class _Spans:
    """Numbers the operations that the threads of a block run."""

    def __init__(self, block_loop: Any) -> None:
        self._spans: dict[Any, tuple[int, int]] = {}
        self._uses: dict[Any, list[Any]] = {}
        self._number(block_loop.body)
        self._collect_uses(block_loop)

    def of_buffer(self, buffer: Any) -> tuple[int, int]:
        """Return the first and last number that use an allocation.

        A use in a loop that does not contain the allocation counts for the whole
        loop: the buffer carries values from one iteration to the next.
        """
        level = buffer.operation.block
        numbers = [self._spans[buffer.operation]]
        for user in self._uses.get(buffer.memref, []):
            numbers.append(self._spans[_ancestor(user, level)])
        used = numbers[1:] or numbers
        return min(first for first, _ in used), max(last for _, last in used)

    def _number(self, block: Any) -> None:
        for op in block.operations:
            first = len(self._spans)
            self._spans[op.operation] = (first, first)
            if isinstance(op, scf.ForOp):
                self._number(op.body)
                self._spans[op.operation] = (first, len(self._spans) - 1)

    def _collect_uses(self, block_loop: Any) -> None:
        def visit(op: ir.Operation) -> ir.WalkResult:
            for operand in op.operands:
                if isinstance(operand.type, ir.MemRefType):
                    self._uses.setdefault(storage_of(operand), []).append(op)
            return ir.WalkResult.ADVANCE

        for op in phases_in(block_loop.body):
            op.operation.walk(visit)


def _ancestor(op: Any, block: Any) -> Any:
    operation = op.operation
    while operation.block != block:
        operation = operation.parent
    return operation


def _replace(loop: Any, allocations: Sequence[Any], offsets: Sequence[int]) -> None:
    space = workgroup_space()
    i8 = ir.IntegerType.get_signless(8)
    dynamic = ir.ShapedType.get_dynamic_size()
    with ir.InsertionPoint.at_block_begin(loop.body):
        whole = gpu.DynamicSharedMemoryOp(
            ir.MemRefType.get([dynamic], i8, memory_space=space)
        ).result
        views = []
        for op, offset in zip(allocations, offsets, strict=True):
            start = arith.ConstantOp(ir.IndexType.get(), offset).result
            views.append(_view(op, whole, start))
    for op, view in zip(allocations, views, strict=True):
        op.memref.replace_all_uses_with(view)
        if PADDING in op.operation.attributes:
            retype_slices(view)
        op.erase()


def _padded_type(allocation: Any) -> ir.MemRefType:
    """Return the type of a buffer together with what lies behind its rows.

    Raises:
        PassError: The padding is no number of elements; located at the allocation.
    """
    type_ = ir.MemRefType(allocation.memref.type)
    if PADDING not in allocation.operation.attributes:
        return type_
    padding = ir.IntegerAttr(allocation.operation.attributes[PADDING]).value
    if padding < 1 or not type_.shape:
        raise located_error(
            allocation, f"expected {PADDING} of at least 1 on rows, got {padding}"
        )
    shape = [*type_.shape[:-1], type_.shape[-1] + padding]
    return ir.MemRefType.get(shape, type_.element_type, memory_space=type_.memory_space)


def _view(allocation: Any, whole: ir.Value, start: ir.Value) -> ir.Value:
    """Build the place of a buffer, without what lies behind its rows."""
    type_ = _padded_type(allocation)
    placed: ir.Value = memref.ViewOp(type_, whole, start, []).result
    shape = list(allocation.memref.type.shape)
    if list(type_.shape) == shape:
        return placed
    return strided_subview(placed, [None] * len(shape), shape, [1] * len(shape))
