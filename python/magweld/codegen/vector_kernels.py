"""Owns what kernels of hand-written shape are defined for: a module and its vectors."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir


@dataclass(frozen=True)
class VectorKernels:
    """Defines kernels in a module, for the vectors of a CPU.

    Attributes:
        module: The module.
        lanes: Floats of a vector.
        registers: How many vectors the CPU holds, 16 or 32.
    """

    module: ir.Module
    lanes: int
    registers: int
