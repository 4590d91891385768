"""Owns what the ways to vectorise a matrix product are compared by."""

from __future__ import annotations

from dataclasses import dataclass

from magweld.passes.cpu.register_tile import RegisterTile

# Multiply-adds in flight that hide the latency of one.
VECTORS_IN_FLIGHT = 4
# Part of the registers that operands and addresses need.
OPERAND_SHARE = 4
# Cycles that a load costs a step although it runs beside the multiply-adds: 6x4
# blocks of vectors reach 100 GFLOP/s where 12x2 reach 90 (Zen 4).
LOAD_CYCLES = 0.5
# Cycles to read and write a vector of the output.
OUTPUT_CYCLES = 2.0


@dataclass(frozen=True)
class Candidate:
    """A register tile with the cycles that it takes."""

    cycles: float
    tile: RegisterTile


def power_below(extent: int) -> int:
    """Return the largest power of two that is not greater."""
    return 1 << (extent.bit_length() - 1)
