"""Owns place-allocations: buffers inside a kernel move in front of its loops."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from magweld.bindings import func, ir, memref
from magweld.passes.base import Pass
from magweld.passes.cpu.kernels import SCRATCH, kernels_of
from magweld.passes.ir_utils import located_error, operations_of

# Kernels run in threads of the caller, whose stacks are as small as 128 KiB on some
# systems; other frames want most of that.
STACK_BYTES = 16 * 1024
_ALIGNMENT = 64


@dataclass(frozen=True)
class PlaceAllocations(Pass):
    """Make every buffer of a kernel once per call: on the stack, or allocated.

    A tile's buffers have static sizes and are free again with its end, so all tiles
    of a call, which one thread runs, share them. The smallest go on the stack until
    `stack_bytes` are used; the others are allocated at entry and freed at the end, and
    `magweld.scratch_bytes` says how much that is.

    Attributes:
        stack_bytes: Bytes that a kernel may take of its thread's stack.
    """

    name: ClassVar[str] = "place-allocations"

    stack_bytes: int = STACK_BYTES

    def run(self, module: ir.Operation) -> None:
        """Move the buffers of all kernels of the module."""
        for function in kernels_of(module):
            allocations = operations_of(function, memref.AllocOp)
            for op in operations_of(function, memref.DeallocOp):
                op.operation.erase()
            self._place(function, allocations)

    def _place(self, function: func.FuncOp, allocations: list[memref.AllocOp]) -> None:
        left, allocated = self.stack_bytes, 0
        for op in sorted(allocations, key=_bytes):
            _require_local(op)
            left -= -(-_bytes(op) // _ALIGNMENT) * _ALIGNMENT
            if left >= 0:
                _to_stack(function, op)
            else:
                allocated += _bytes(op)
                _to_entry(function, op)
        if allocated:
            number = ir.IntegerType.get_signless(64)
            function.attributes[SCRATCH] = ir.IntegerAttr.get(number, allocated)


def _bytes(op: memref.AllocOp) -> int:
    kind = op.memref.type
    width = getattr(kind.element_type, "width", 64)
    return int(prod(kind.shape) * max(1, width // 8))


def _require_local(op: memref.AllocOp) -> None:
    if not op.memref.type.has_static_shape:
        raise located_error(op, "expected a static size inside a kernel")
    if any(use.owner.operation.name == "scf.yield" for use in op.memref.uses):
        raise located_error(op, "is carried from one iteration to the next")


def _to_stack(function: func.FuncOp, op: memref.AllocOp) -> None:
    with ir.InsertionPoint.at_block_begin(function.entry_block), op.location:
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _ALIGNMENT)
        stack = memref.AllocaOp(op.memref.type, [], [], alignment=alignment)
    op.memref.replace_all_uses_with(stack.memref)
    op.operation.erase()


def _to_entry(function: func.FuncOp, op: memref.AllocOp) -> None:
    first, *_ = function.entry_block.operations
    if op.operation != first.operation:
        op.operation.move_before(first.operation)
    *_, terminator = function.entry_block.operations
    with ir.InsertionPoint(terminator), op.location:
        memref.DeallocOp(op.memref)
