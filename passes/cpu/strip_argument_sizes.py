"""Owns strip-argument-sizes: buffers of sizes that a call tells become pointers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import func, ir, memref
from magweld.dialects.tile_graph import RUNTIME
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error

# The last arguments of a kernel of sizes that a call tells.
_SIZES = ("extent", "first tile", "last tile")


@dataclass(frozen=True)
class StripArgumentSizes(Pass):
    """Give the buffers that a kernel with `tile_graph.runtime` takes static types.

    Kernels take bare pointers, which buffers of dynamic size are none. A dynamic extent
    becomes one in the type of the argument, behind which the buffer has its extent
    again; no address depends on it.

        func @k(%a: memref<?x64xf32>, %n, %lo, %hi)
    =>  func @k(%p: memref<1x64xf32>, %n, %lo, %hi) {
          %r = memref.reinterpret_cast %p to offset: [0], sizes: [%n, 64], ...
          %a = memref.cast %r
    """

    name: ClassVar[str] = "strip-argument-sizes"

    def run(self, module: Any) -> None:
        """Rewrite all kernels of the module."""
        for function in kernels_of(module):
            if RUNTIME in function.attributes:
                with function.location:
                    _strip(function)


def _strip(function: func.FuncOp) -> None:
    """Rewrite one kernel.

    Raises:
        PassError: It takes no extent and range, or strides depend on the extent.
    """
    block = function.entry_block
    if len(block.arguments) < len(_SIZES):
        raise located_error(function, f"takes no {', '.join(_SIZES)}")
    *buffers, extent, _, _ = block.arguments
    for argument in buffers:
        type_ = ir.MemRefType(argument.type)
        if type_.has_static_shape:
            continue
        old = type_
        with ir.InsertionPoint.at_block_begin(block):
            argument.set_type(_static(old, function))
            uses = list(argument.uses)
            whole = _whole(argument, old, extent)
        for use in uses:
            use.owner.operation.operands[use.operand_number] = whole
    inputs = [argument.type for argument in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(inputs, [])
    )


def _static(type_: Any, function: func.FuncOp) -> Any:
    """Return the type of one row.

    Raises:
        PassError: Strides depend on the dynamic extent.
    """
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = list(type_.shape)
    if shape.count(dynamic) > 1 or any(n != 1 for n in shape[: shape.index(dynamic)]):
        raise located_error(function, f"takes {type_}, whose strides are not constant")
    ones = [1 if extent == dynamic else extent for extent in shape]
    return ir.MemRefType.get(ones, type_.element_type)


def _whole(pointer: Any, type_: Any, extent: Any) -> Any:
    """Emit the buffer that a pointer is to."""
    dynamic = ir.ShapedType.get_dynamic_size()
    strides, _ = ir.MemRefType(pointer.type).get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(0, strides)
    strided = ir.MemRefType.get(list(type_.shape), type_.element_type, layout)
    sizes = [dynamic if n == dynamic else n for n in type_.shape]
    view = memref.ReinterpretCastOp(
        strided, pointer, [], [extent], [], [0], sizes, strides
    )
    return memref.CastOp(type_, view.result).result
