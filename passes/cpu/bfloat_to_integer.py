"""Owns bfloat-to-integer: elements of bf16 become integers of the same bits."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, func, ir, memref
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class BfloatToInteger(Pass):
    """Move bf16 elements of kernels as i16, once their arithmetic is that of f32.

        %v = vector.load %x[%i] : memref<64xbf16>, vector<16xbf16>
        %b = arith.bitcast %v : vector<16xbf16> to vector<16xi16>

    becomes

        %b = vector.load %x[%i] : memref<64xi16>, vector<16xi16>

    To LLVM bfloat is a number: where the CPU has no arithmetic for it, LLVM takes
    vectors of it apart. Kernels that still compute with bf16 are left alone.
    """

    name: ClassVar[str] = "bfloat-to-integer"

    def run(self, module: ir.Operation) -> None:
        """Rewrite all kernels of the module."""
        for function in kernels_of(module):
            if not _holds(function):
                continue
            if not any(map(_computes, operations_of(function, ir.OpView))):
                _rewrite(function)


def _holds(function: func.FuncOp) -> bool:
    """Tell whether a kernel has a buffer of bf16, the only place where it is moved."""
    buffers = [*function.body.blocks[0].arguments]
    for kind in (memref.AllocOp, memref.AllocaOp, memref.GetGlobalOp):
        buffers += [op.result for op in operations_of(function, kind)]
    return any(_as_integers(buffer.type) is not None for buffer in buffers)


def _computes(op: ir.OpView) -> bool:
    """Tell whether an operation does more with bf16 than move it."""
    name = str(op.operation.name)
    moves = isinstance(op, arith.BitcastOp | arith.ConstantOp | arith.SelectOp)
    if moves or not name.startswith(("arith.", "math.", "linalg.")):
        return False
    values = [*op.operation.operands, *op.operation.results]
    return any(_as_integers(value.type) is not None for value in values)


def _rewrite(function: func.FuncOp) -> None:
    for op in operations_of(function, arith.ConstantOp):
        if _as_integers(op.result.type) is not None:
            op.operation.attributes["value"] = _bits_of(
                op.operation.attributes["value"]
            )
    for value in list(_values(function)):
        kind = _as_integers(value.type)
        if kind is not None:
            value.set_type(kind)
    block = function.body.blocks[0]
    inputs = [argument.type for argument in block.arguments]
    kind = ir.FunctionType.get(inputs, function.type.results)
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    for op in operations_of(function, arith.BitcastOp):
        if op.in_.type == op.out.type:
            op.out.replace_all_uses_with(op.in_)
            op.operation.erase()


def _values(function: func.FuncOp) -> Iterator[Any]:
    for op in operations_of(function, ir.OpView):
        yield from op.operation.results
        for region in op.operation.regions:
            for block in region.blocks:
                yield from block.arguments


def _as_integers(kind: ir.Type) -> ir.Type | None:
    """Return a type with i16 in the place of bf16, None where it has none."""
    integer = ir.IntegerType.get_signless(16)
    if isinstance(kind, ir.BF16Type):
        return integer
    shaped = isinstance(kind, ir.VectorType | ir.MemRefType)
    if not shaped or not isinstance(kind.element_type, ir.BF16Type):
        return None
    if isinstance(kind, ir.VectorType):
        return ir.VectorType.get(kind.shape, integer)
    return ir.MemRefType.get(kind.shape, integer, kind.layout, kind.memory_space)


def _bits_of(number: ir.Attribute) -> ir.Attribute:
    if isinstance(number, ir.DenseElementsAttr):
        kind = _as_integers(number.type)
        element = _bits_of(number.get_splat_value())
        return ir.DenseElementsAttr.get_splat(kind, element)
    (bits,) = struct.unpack("<i", struct.pack("<f", ir.FloatAttr(number).value))
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(16), bits >> 16)
