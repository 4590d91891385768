"""Owns tile-for-registers: every linalg operation gets its register tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import func, ir
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.cpu.loop_nest import NotALoopNest
from magweld.passes.cpu.register_policy import choose_register_tile
from magweld.passes.cpu.register_tile import ATTRIBUTE, NONE, VectorUnit
from magweld.passes.cpu.sweeps import Sweep, sweeps_of
from magweld.passes.cpu.vector_unit_pass import VectorUnitPass
from magweld.passes.ir.utils import add_remark


@dataclass(frozen=True)
class TileForRegisters(VectorUnitPass):
    """Decide how each bufferised linalg operation of a kernel uses vector registers.

    The decision is the attribute `magweld.registers` of the `linalg.generic`: which
    loops become one, which is vectorised with how many lanes, how many iterations
    of each make a register tile, whether an operand is packed. An operation that is
    no static loop nest gets none; the kernel keeps the reason as a remark. What
    `fuse-epilogues` joined has one, at the reduction. A decision that is there is kept.

    Attributes:
        vector_bits: Width of a vector register.
        vector_registers: Number of vector registers.
        bf16_pairs: Whether one instruction multiplies pairs of bf16.
    """

    name: ClassVar[str] = "tile-for-registers"

    def run(self, module: ir.Operation) -> None:
        """Annotate the operations of all kernels of the module."""
        for function in kernels_of(module):
            for sweep in sweeps_of(function):
                if ATTRIBUTE not in sweep.root.attributes:
                    _annotate(function, sweep, self.unit)


def _annotate(function: func.FuncOp, sweep: Sweep, unit: VectorUnit) -> None:
    op = sweep.root
    try:
        nest = sweep.nest()
    except NotALoopNest as error:
        add_remark(function, f"plain loops for '{op.name}': {error}")
        return
    tile = choose_register_tile(nest, unit)
    op.attributes[ATTRIBUTE] = tile.to_attribute()
    if tile.vector_dim == NONE and nest.points > 1:
        reason = nest.scalar_reason or "no loop walks memory contiguously"
        add_remark(function, f"scalar code for '{op.name}': {reason}")
