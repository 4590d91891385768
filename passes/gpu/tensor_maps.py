"""Owns the parameters of GPU kernels that say where the boxes of a tensor lie.

The tensor memory accelerator finds a tensor by a map of 128 bytes, which the launcher
makes of its address. The function around a launch has such a map as an argument of type
`!llvm.ptr` behind its own, and `magweld.tensor_maps` says of each of these which tensor
it is of:

    magweld.tensor_maps = [{argument = 0 : i64, box = array<i64: 128, 64>,
                            swizzle = 128 : i64}]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import func, ir
from magweld.passes.gpu.structure import element_bytes
from magweld.tensor_map import MAP_ALIGNMENT, MAP_BYTES, TensorMap

# On the function: what its last arguments are.
TENSOR_MAPS = "magweld.tensor_maps"
# On a launch that is described: which of its parameters are maps.
MAPPED = "tensor_maps"

_POINTER = "!llvm.ptr"
# The kernel gets the map itself, and reads it where the launch has put it.
PARAMETER = (
    f"{{llvm.align = {MAP_ALIGNMENT} : i64, "
    f"llvm.byval = !llvm.array<{MAP_BYTES} x i8>, nvvm.grid_constant}}"
)


@dataclass(frozen=True)
class MapArgument:
    """An argument that is the map of another one.

    Attributes:
        number: Its own number.
        argument: That of the tensor.
        map: What it says.
    """

    number: int
    argument: int
    map: TensorMap


def map_of(type_: ir.Type, box: Sequence[int], swizzle: int) -> TensorMap:
    """Return the map of a tensor in rows of elements without gaps."""
    kind = ir.MemRefType(type_)
    shape, size = tuple(kind.shape), element_bytes(kind.element_type)
    strides = tuple(size * math.prod(shape[place:]) for place in range(1, len(shape)))
    return TensorMap(f"{kind.element_type}", shape, strides, tuple(box), swizzle)


def maps_of(function: Any) -> Iterator[MapArgument]:
    """Yield the maps that a function has as arguments."""
    if TENSOR_MAPS not in function.attributes:
        return
    described = ir.ArrayAttr(function.attributes[TENSOR_MAPS])
    types = list(function.type.inputs)
    for number, entry in enumerate(described, len(types) - len(described)):
        fields = ir.DictAttr(entry)
        argument = ir.IntegerAttr(fields["argument"]).value
        box = list(ir.DenseI64ArrayAttr(fields["box"]))
        swizzle = ir.IntegerAttr(fields["swizzle"]).value
        yield MapArgument(number, argument, map_of(types[argument], box, swizzle))


def map_argument(function: Any, argument: int, one: TensorMap) -> ir.Value | None:
    """Return the argument of a function that is such a map, None if none is.

    Args:
        argument: Number of the tensor among its arguments.
    """
    for known in maps_of(function):
        if known.argument == argument and known.map == one:
            found: ir.Value = function.entry_block.arguments[known.number]
            return found
    return None


def add_map(
    function: func.FuncOp, argument: int, box: Sequence[int], swizzle: int
) -> None:
    """Give a function one more argument, a map, if it has not the same already."""
    i64 = ir.IntegerType.get_signless(64)
    entry = ir.DictAttr.get(
        {
            "argument": ir.IntegerAttr.get(i64, argument),
            "box": ir.DenseI64ArrayAttr.get(list(box)),
            "swizzle": ir.IntegerAttr.get(i64, swizzle),
        }
    )
    attributes = function.operation.attributes
    known = (
        [*ir.ArrayAttr(attributes[TENSOR_MAPS])] if TENSOR_MAPS in attributes else []
    )
    if entry in known:
        return
    pointer = ir.Type.parse(_POINTER)
    type_ = function.type
    function.entry_block.add_argument(pointer, function.location)
    kind = ir.FunctionType.get([*type_.inputs, pointer], type_.results)
    attributes["function_type"] = ir.TypeAttr.get(kind)
    if "arg_attrs" in attributes:
        attributes["arg_attrs"] = ir.ArrayAttr.get(
            [*ir.ArrayAttr(attributes["arg_attrs"]), ir.DictAttr.get({})]
        )
    attributes[TENSOR_MAPS] = ir.ArrayAttr.get([*known, entry])


def mapped_parameters(function: Any, numbers: Sequence[int]) -> list[Any]:
    """Describe which parameters of a launch are maps.

    Args:
        function: What launches.
        numbers: Of its arguments, one for each parameter.
    """
    i64 = ir.IntegerType.get_signless(64)
    described = []
    for one in maps_of(function):
        for position, number in enumerate(numbers):
            if number == one.number:
                described.append(
                    ir.DictAttr.get(
                        {
                            "box": ir.DenseI64ArrayAttr.get(one.map.box),
                            "element": ir.StringAttr.get(one.map.element),
                            "extents": ir.DenseI64ArrayAttr.get(one.map.extents),
                            "parameter": ir.IntegerAttr.get(i64, position),
                            "strides": ir.DenseI64ArrayAttr.get(one.map.strides),
                            "swizzle": ir.IntegerAttr.get(i64, one.map.swizzle),
                        }
                    )
                )
    return described


def tensors_of(function: Any, numbers: Sequence[int]) -> list[int]:
    """Return of which tensor each parameter of a launch is, maps as well."""
    known = {one.number: one.argument for one in maps_of(function)}
    return [known.get(number, number) for number in numbers]
