"""Owns what the tensor memory accelerator is told of a tensor: its form, and of a box.

The rules are those of CUDA's driver API, "Tensor Map Object Management",
`cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Bytes of an element, by its type.
_ELEMENTS: Final = {"f16": 2, "bf16": 2, "f32": 4}
# Bytes of the map, and what its address is a multiple of.
MAP_BYTES: Final = 128
MAP_ALIGNMENT: Final = 64
# Bytes that strides, rows of boxes and the address of a tensor are multiples of.
UNIT_BYTES: Final = 16
MOST_IN_BOX: Final = 256
_MOST_DIMENSIONS: Final = 5
_MOST_ELEMENTS: Final = 2**32
_STRIDE_END: Final = 2**40
SWIZZLES: Final = (0, 128)


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory, and the box of it that one instruction copies.

    Dimensions are in the order of the tensor: the last one lies side by side.

    Attributes:
        element: "f16", "bf16" or "f32".
        extents: Elements along each dimension.
        strides: Bytes from one to the next along each dimension but the last.
        box: Elements that are copied along each dimension; those behind the end of the
            tensor arrive as zeros.
        swizzle: Bytes of the rows in shared memory whose chunks of 16 are permuted, 0
            for none.
    """

    element: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0

    def violations(self) -> Iterator[str]:
        """Yield what CUDA does not take."""
        if self.element not in _ELEMENTS:
            yield f"expected elements of {', '.join(_ELEMENTS)}, got {self.element!r}"
            return
        rank = len(self.extents)
        if not 1 <= rank <= _MOST_DIMENSIONS:
            yield f"expected 1 to {_MOST_DIMENSIONS} dimensions, got {rank}"
        if len(self.box) != rank or len(self.strides) != rank - 1:
            yield f"expected strides and a box of {rank} dimensions"
            return
        if not all(0 < extent <= _MOST_ELEMENTS for extent in self.extents):
            yield f"expected 1 to 2^32 elements a dimension, got {self.extents}"
        if any(s % UNIT_BYTES or not 0 < s < _STRIDE_END for s in self.strides):
            yield f"expected strides of a multiple of {UNIT_BYTES}, got {self.strides}"
        if not all(0 < size <= MOST_IN_BOX for size in self.box):
            yield f"expected boxes of 1 to {MOST_IN_BOX} elements, got {self.box}"
        yield from self._row_violations()

    def _row_violations(self) -> Iterator[str]:
        size = self.box[-1] * _ELEMENTS[self.element]
        if size % UNIT_BYTES:
            yield f"expected rows of a multiple of {UNIT_BYTES} bytes, got {size}"
        if self.swizzle not in SWIZZLES:
            yield f"expected a swizzle of one of {SWIZZLES} bytes, got {self.swizzle}"
        elif self.swizzle and size > self.swizzle:
            yield f"expected rows of up to {self.swizzle} bytes, got {size}"


@dataclass(frozen=True)
class MappedParameter:
    """A parameter of a kernel that is a tensor map, and no pointer.

    Attributes:
        position: Number of the parameter; the tensor is what its pointer would be to.
        map: What is said of the tensor.
    """

    position: int
    map: TensorMap
