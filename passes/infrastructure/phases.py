"""Owns the names of the stages that a module goes through, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from magweld.targets.target import Backend


class Phase(StrEnum):
    """A stage of a module; `str()` is its name in tools."""

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
    BUFFERIZED = "bufferized", "kernels on buffers that compute a range of their tiles"
    VECTORIZED = "vectorized", "kernels as loops over vector registers"
    LLVM = "llvm", "kernels in the LLVM dialect"
    OBJECT = "object", "a relocatable object file with the kernels; no module"
    GPU = "gpu", "kernels in gpu.module, the code of one thread"
    NVVM = "nvvm", "kernels in the LLVM and NVVM dialects"
    ROCDL = "rocdl", "kernels in the LLVM and ROCDL dialects"
    BINARY = "binary", "machine code in gpu.binary"

    def is_before(self, other: Phase) -> bool:
        """Return whether a module reaches this stage before another one.

        Stages of different targets, such as `LLVM` and `GPU`, are in no order.
        """
        return any(
            self in way and other in way and way.index(self) < way.index(other)
            for way in PHASES.values()
        )


GRAPH_PHASES: tuple[Phase, ...] = (
    Phase.TORCH,
    Phase.LINALG,
    Phase.TILE_GRAPH,
    Phase.SCHEDULED,
    Phase.PLANNED,
    Phase.TILED,
)
"""The phases that all targets have."""

PHASES: Mapping[Backend, tuple[Phase, ...]] = MappingProxyType(
    {
        Backend.CPU: (
            *GRAPH_PHASES,
            Phase.BUFFERIZED,
            Phase.VECTORIZED,
            Phase.LLVM,
            Phase.OBJECT,
        ),
        Backend.NVVM: (*GRAPH_PHASES, Phase.GPU, Phase.NVVM, Phase.BINARY),
        Backend.ROCDL: (*GRAPH_PHASES, Phase.GPU, Phase.ROCDL, Phase.BINARY),
    }
)
"""The way of a module to the code of each kind of target."""
