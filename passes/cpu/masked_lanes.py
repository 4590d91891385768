"""Owns where the last iterations of a loop are a vector that is not full; no MLIR here.

Lanes that are no iterations are neither read nor written. What is computed in them is
computed of zeros.
"""

from __future__ import annotations

from magweld.passes.cpu.loop_nest import LoopNest
from magweld.passes.cpu.register_tile import READ_ALONG, VectorUnit
from magweld.passes.tiling.vectors import MASKED_BYTES

_BITS = MASKED_BYTES * 8


def can_be_masked(nest: LoopNest, loop: int, unit: VectorUnit) -> bool:
    """Whether what fills no vector along a loop can be one vector that is not full."""
    if not (unit.has_masks and nest.is_float and nest.parallel[loop]):
        return False
    read = [access for access in nest.inputs if access.used]
    moving = [a for a in (*read, *nest.outputs, *nest.beside) if a.strides[loop]]
    along = all(access.strides[loop] in (0, *READ_ALONG) for access in read)
    beside = all(access.strides[loop] in (0, 1) for access in nest.beside)
    stored = all(access.strides[loop] == 1 for access in nest.outputs)
    return along and beside and stored and all(a.bits == _BITS for a in moving)


def masked_width(extent: int, lanes: int) -> int:
    """Return the lanes of vectors that an extent fills best if one is not full."""
    return min(lanes, 1 << (extent - 1).bit_length())
