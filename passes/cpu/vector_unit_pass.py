"""Owns what passes have in common that decide by the vector registers of a CPU."""

from __future__ import annotations

from dataclasses import dataclass

from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.infrastructure.base import Pass


@dataclass(frozen=True)
class VectorUnitPass(Pass):
    """A pass whose options are the vector registers.

    Attributes:
        vector_bits: Width of a vector register.
        vector_registers: Number of vector registers.
        bf16_pairs: Whether one instruction multiplies pairs of bf16.
    """

    vector_bits: int = 512
    vector_registers: int = 32
    bf16_pairs: bool = False

    @property
    def unit(self) -> VectorUnit:
        """The vector registers."""
        return VectorUnit(self.vector_bits, self.vector_registers, self.bf16_pairs)
