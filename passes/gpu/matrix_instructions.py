"""Owns the matrix instructions of GPUs: shapes, and which lane holds which element.

Layouts are those of the PTX ISA ("Matrix Fragments for mma.m16n8k16") and of AMD's ISA
documents for CDNA 2 and 3 ("Matrix fused multiply add, output layout").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from magweld.bindings import ir

Position = Callable[[ir.AffineExpr], tuple[ir.AffineExpr, ir.AffineExpr]]
"""Row (or column) and step of the reduction, of the number of a lane."""


@dataclass(frozen=True)
class Side:
    """How one dimension of a result is shared by the lanes of a subgroup.

    Attributes:
        extents: What the dimension is split into, outermost first.
        lane: Which of these parts lanes are counted along; the others are registers.
    """

    extents: tuple[int, ...]
    lane: int

    @property
    def lanes(self) -> int:
        """Lanes along the dimension."""
        return self.extents[self.lane]

    @property
    def size(self) -> int:
        """Elements along the dimension."""
        return math.prod(self.extents)

    @property
    def registers(self) -> tuple[int, ...]:
        """Elements that one lane has along each part."""
        return tuple(1 if i == self.lane else e for i, e in enumerate(self.extents))


@dataclass(frozen=True)
class MatrixInstruction:
    """A matrix instruction: result += left * right, by all lanes of a subgroup.

    Lane `l` is number `l // columns.lanes` along the lanes of the rows and
    `l % columns.lanes` along those of the columns.

    Attributes:
        name: The intrinsic of LLVM.
        operand: Element type of the factors; the result is f32.
        reduction: Steps of the reduction.
        subgroup: Lanes.
        rows: How lanes share the rows of the result.
        columns: How they share its columns.
        left: Where the elements begin that are one operand of a lane; each has `width`.
        right: Likewise, by columns.
        width: Neighbours along the reduction in one operand.
    """

    name: str
    operand: str
    reduction: int
    subgroup: int
    rows: Side
    columns: Side
    left: tuple[Position, ...]
    right: tuple[Position, ...]
    width: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and steps."""
        return self.rows.size, self.columns.size, self.reduction


def _mfma(name: str, operand: str, width: int) -> MatrixInstruction:
    """Return an instruction of 16 x 16 results, four rows of one column a lane."""

    def position(lane: ir.AffineExpr) -> tuple[ir.AffineExpr, ir.AffineExpr]:
        return lane % 16, ir.AffineExpr.get_floor_div(lane, 16) * width

    return MatrixInstruction(
        name=name,
        operand=operand,
        reduction=4 * width,
        subgroup=64,
        rows=Side((4, 4), 0),
        columns=Side((16,), 0),
        left=(position,),
        right=(position,),
        width=width,
    )


def _mma(name: str, operand: str) -> MatrixInstruction:
    """Return mma.sync.m16n8k16: two rows of two columns a lane."""

    def at(row: int, step: int) -> Position:
        def position(lane: ir.AffineExpr) -> tuple[ir.AffineExpr, ir.AffineExpr]:
            return ir.AffineExpr.get_floor_div(lane, 4) + row, lane % 4 * 2 + step

        return position

    return MatrixInstruction(
        name=name,
        operand=operand,
        reduction=16,
        subgroup=32,
        rows=Side((2, 8), 1),
        columns=Side((4, 2), 0),
        left=(at(0, 0), at(8, 0), at(0, 8), at(8, 8)),
        right=(at(0, 0), at(0, 8)),
        width=2,
    )


# gfx90a and gfx942 have the same ones. Products of f32 keep their precision there; on
# NVIDIA's GPUs they would be rounded to tf32, so that they are computed by threads.
INSTRUCTIONS: dict[str, tuple[MatrixInstruction, ...]] = {
    "": (),
    "mfma": (
        _mfma("llvm.amdgcn.mfma.f32.16x16x16f16", "f16", 4),
        _mfma("llvm.amdgcn.mfma.f32.16x16x16bf16.1k", "bf16", 4),
        _mfma("llvm.amdgcn.mfma.f32.16x16x4f32", "f32", 1),
    ),
    "mma": (
        _mma("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "f16"),
        _mma("llvm.nvvm.mma.m16n8k16.row.col.bf16", "bf16"),
    ),
}
"""By family; both are there on all targets that have a family."""


def instruction_of(name: str) -> MatrixInstruction:
    """Return an instruction by the name of its intrinsic.

    Raises:
        KeyError: There is none.
    """
    every = (one for family in INSTRUCTIONS.values() for one in family)
    return {one.name: one for one in every}[name]
