"""Owns the names of the stages that a module goes through."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Phase(StrEnum):
    """A stage of a module, in the order of lowering; `str()` is its name in tools."""

    description: str

    def __new__(cls, value: str, description: str = "") -> Self:
        """Make a member from its name and what a module looks like at it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    TORCH = "torch", "the captured graph in the torch dialect, parameters as inputs"
    LINALG = "linalg", "linalg on static tensors; calls to externals without lowering"
    TILE_GRAPH = "tile-graph", "operators and the edges between them"
    SCHEDULED = "scheduled", "every edge has a memory level, every subgraph a tile"
    PLANNED = "planned", "every tile has a place, and is loaded, computed and stored"
    TILED = "tiled", "one function a subgraph: fused linalg on tiles in scf.forall"
    LLVM = "llvm", "bufferised and vectorised kernels in the LLVM dialect, for a CPU"
    GPU = "gpu", "kernels in gpu.module, for a GPU"
    BINARY = "binary", "machine code"

    def is_before(self, other: Phase) -> bool:
        """Return whether a module reaches this stage before another one.

        `LLVM` and `GPU` are arms of different targets: neither is before the other.
        """
        if {self, other} == {Phase.LLVM, Phase.GPU}:
            return False
        order = list(Phase)
        return order.index(self) < order.index(other)
