"""Owns set-unit-strides: slices of one element along a dimension step by one there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import affine, gpu, ir, memref, vector
from magweld.passes.gpu.retyped_slices import retype_slices
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of, users_of

# What only looks at elements.
_ACCESSES = (
    affine.AffineLoadOp,
    affine.AffineStoreOp,
    memref.LoadOp,
    memref.StoreOp,
    vector.LoadOp,
    vector.StoreOp,
)


@dataclass(frozen=True)
class SetUnitStrides(Pass):
    """Let slices that have one element along a dimension step by one along it.

    ```mlir
    %s = memref.subview %x[%i, %j] [1, 7] [4, 2]
        : memref<8x14xf32> to memref<1x7xf32, strided<[56, 2], offset: ?>>
    ```
    becomes
    ```mlir
    %s = memref.subview %x[%i, %j] [1, 7] [1, 2]
        : memref<8x14xf32> to memref<1x7xf32, strided<[14, 2], offset: ?>>
    ```
    How far a second element would be says nothing. But upstream composes such a slice
    with one around it that drops dimensions, and tells then by distances in the source
    which ones these are: a distance that is another one there is taken for dropped.
    Slices stay as they are if anything but loads, stores and slices of all dimensions
    uses them.
    """

    name: ClassVar[str] = "set-unit-strides"

    def run(self, module: Any) -> None:
        """Rewrite the slices of all GPU modules."""
        for device in operations_of(module, gpu.GPUModuleOp):
            # Slices of slices come first: they are built again with these.
            for subview in reversed(list(_slices_in(device))):
                with ir.InsertionPoint(subview), subview.location:
                    made = _stepping_by_one(subview)
                subview.result.replace_all_uses_with(made)
                subview.operation.erase()
                retype_slices(made)


def _slices_in(device: Any) -> Iterator[memref.SubViewOp]:
    """Yield those that are written anew, each before the slices of it."""
    for subview in operations_of(device, memref.SubViewOp):
        sizes, strides = list(subview.static_sizes), list(subview.static_strides)
        far = any(
            size == 1 and stride != 1
            for size, stride in zip(sizes, strides, strict=True)
        )
        if far and _has_all_dimensions(subview) and _is_accessed(subview.result):
            yield subview


def _has_all_dimensions(subview: memref.SubViewOp) -> bool:
    return list(subview.result.type.shape) == list(subview.static_sizes)


def _is_accessed(value: ir.Value) -> bool:
    """Tell whether only accesses use a slice, and slices of it that drop nothing."""
    for user in users_of(value):
        if isinstance(user, memref.SubViewOp):
            if not _has_all_dimensions(user) or not _is_accessed(user.result):
                return False
        elif not isinstance(user, _ACCESSES):
            return False
    return True


def _stepping_by_one(subview: memref.SubViewOp) -> ir.Value:
    sizes = list(subview.static_sizes)
    strides = [
        1 if size == 1 else stride
        for size, stride in zip(sizes, subview.static_strides, strict=True)
    ]
    type_ = ir.MemRefType(subview.result.type)
    source, _ = ir.MemRefType(subview.source.type).get_strides_and_offset()
    _, offset = type_.get_strides_and_offset()
    distances = [a * b for a, b in zip(source, strides, strict=True)]
    layout = ir.StridedLayoutAttr.get(offset, distances)
    result = ir.MemRefType.get(sizes, type_.element_type, layout, type_.memory_space)
    made: ir.Value = memref.SubViewOp(
        result,
        subview.source,
        list(subview.offsets),
        [],
        [],
        list(subview.static_offsets),
        sizes,
        strides,
    ).result
    return made
