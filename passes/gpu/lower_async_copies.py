"""Owns lower-async-copies: asynchronous copies become instructions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, ir, nvgpu
from magweld.dialects.tile_graph import ASYNC_COPY, SWIZZLED
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    linalg_operations_in,
    loop_nest_of,
    outputs_of,
)
from magweld.passes.gpu.row_alignment import row_alignment
from magweld.passes.gpu.structure import (
    VECTOR_BYTES,
    VECTOR_LOOP,
    element_bytes,
    kernels_of,
)
from magweld.passes.gpu.swizzled_tiles import as_index, flat_view, swizzled_place
from magweld.passes.gpu.warpgroup_product import RingRows
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error

# The least bytes that one instruction copies.
_LEAST_BYTES = 4


@dataclass(frozen=True)
class LowerAsyncCopies(Pass):
    """Replace copies that have `tile_graph.async_copy` by `nvgpu.device_async_copy`.

    One for each piece of a thread, as wide as both ends are aligned; those of 16 bytes
    pass by the first cache. Copies whose ends are aligned to less than 4 bytes, the
    least that is copied asynchronously, are left to the thread: it has made them when
    it waits. Chunks of `tile_graph.swizzled` copies go to where `wgmma` reads them.
    """

    name: ClassVar[str] = "lower-async-copies"

    def run(self, module: Any) -> None:
        """Lower the copies of all kernels."""
        for kernel in kernels_of(module):
            for op in linalg_operations_in(kernel):
                if ASYNC_COPY in op.operation.attributes:
                    _lower(op)


def _lower(op: Any) -> None:
    (source,), (target,) = inputs_of(op), outputs_of(op)
    nest, width = loop_nest_of(op), 1
    if VECTOR_LOOP in op.operation.attributes:
        vector = ir.IntegerAttr(op.operation.attributes[VECTOR_LOOP]).value
        width = nest.extents[vector]
    size = element_bytes(source.type.element_type)
    aligned = math.gcd(width * size, row_alignment(source), row_alignment(target))
    swizzled = SWIZZLED in op.operation.attributes
    if swizzled and aligned != VECTOR_BYTES:
        raise located_error(op, f"expected chunks of 16 bytes, got {target.type}")
    if aligned < _LEAST_BYTES:
        del op.operation.attributes[ASYNC_COPY]
        return
    with ir.InsertionPoint(op), op.location:
        places = _Swizzled(op) if swizzled else _Plain(op)
        for numbers in itertools.product(
            *_starts(nest.extents, width, aligned // size)
        ):
            nvgpu.DeviceAsyncCopyOp(
                places.target,
                places.indices(_in_order(numbers, nest.maps[1])),
                source,
                _constants(_in_order(numbers, nest.maps[0])),
                aligned // size,
                bypassL1=aligned == VECTOR_BYTES or None,
            )
    op.operation.erase()


class _Plain:
    """Where pieces go that are copied to where their slice lies."""

    def __init__(self, op: Any) -> None:
        (self.target,) = outputs_of(op)

    def indices(self, numbers: Sequence[int]) -> list[ir.Value]:
        """Build the indices in the target of a piece of the slice."""
        return _constants(numbers)


class _Swizzled:
    """Where chunks go that are copied to a slot of a swizzled ring.

    Raises:
        PassError: The slice is in no such slot; located at the copy.
    """

    def __init__(self, op: Any) -> None:
        (self._slice,) = outputs_of(op)
        found = RingRows.of(self._slice)
        if found is None:
            raise located_error(
                op, f"expected a slot of a swizzled ring, got {self._slice.type}"
            )
        self._first, self._tile = as_index(found.first), found.tile
        self.target = flat_view(found.ring.owner.opview)

    def indices(self, numbers: Sequence[int]) -> list[ir.Value]:
        """Build the indices in the target of a piece of the slice."""
        strides, _ = ir.MemRefType(self._slice.type).get_strides_and_offset()
        inner = sum(n * stride for n, stride in zip(numbers, strides, strict=True))
        return [swizzled_place(self._slice, inner, self._first, self._tile)]


def _starts(extents: Sequence[int], width: int, piece: int) -> list[range]:
    """Return where pieces begin along each loop; those of a vector along the last."""
    *outer, last = extents
    return [*map(range, outer), range(0, last, piece if width > 1 else 1)]


def _in_order(numbers: Sequence[int], loops: Sequence[Any]) -> list[int]:
    return [numbers[loop] for loop in loops]


def _constants(numbers: Sequence[int]) -> list[ir.Value]:
    return [arith.ConstantOp(ir.IndexType.get(), n).result for n in numbers]
