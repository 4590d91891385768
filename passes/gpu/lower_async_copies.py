"""Owns lower-async-copies: asynchronous copies become instructions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, ir, nvgpu
from magweld.dialects.tile_graph import ASYNC_COPY
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
from magweld.passes.infrastructure.base import Pass

# The least bytes that one instruction copies.
_LEAST_BYTES = 4


@dataclass(frozen=True)
class LowerAsyncCopies(Pass):
    """Replace copies that have `tile_graph.async_copy` by `nvgpu.device_async_copy`.

    One for each piece of a thread, as wide as both ends are aligned; those of 16 bytes
    pass by the first cache. Copies whose ends are aligned to less than 4 bytes, the
    least that is copied asynchronously, are left to the thread: it has made them when
    it waits.
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
    if aligned < _LEAST_BYTES:
        del op.operation.attributes[ASYNC_COPY]
        return
    with ir.InsertionPoint(op), op.location:
        for numbers in itertools.product(
            *_starts(nest.extents, width, aligned // size)
        ):
            nvgpu.DeviceAsyncCopyOp(
                target,
                _indices(numbers, nest.maps[1]),
                source,
                _indices(numbers, nest.maps[0]),
                aligned // size,
                bypassL1=aligned == VECTOR_BYTES or None,
            )
    op.operation.erase()


def _starts(extents: Sequence[int], width: int, piece: int) -> list[range]:
    """Return where pieces begin along each loop; those of a vector along the last."""
    *outer, last = extents
    return [*map(range, outer), range(0, last, piece if width > 1 else 1)]


def _indices(numbers: Sequence[int], loops: Sequence[Any]) -> list[ir.Value]:
    index = ir.IndexType.get()
    return [arith.ConstantOp(index, numbers[loop]).result for loop in loops]
