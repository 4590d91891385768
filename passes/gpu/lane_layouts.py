"""Owns which elements of a matrix in registers a lane has, where subgroups have rows.

Results of the matrix instructions lie so that they are operands of the next ones. Of
`mma.sync` the left one is laid out as results are. Of `mfma` products are transposed:
its results have a column for each lane, and so has its right operand.
"""

from __future__ import annotations

from dataclasses import dataclass

from magweld.bindings import ir
from magweld.passes.gpu.matrix_instructions import INSTRUCTIONS, MatrixInstruction

# Rows of a result that a subgroup has together, and steps of an instruction.
FRAGMENT_ROWS = 16
STEPS = 16
# Columns that a lane has of so many steps.
STEP_COLUMNS = 4


@dataclass(frozen=True)
class LaneLayout:
    """The elements of a lane: rows by columns, each counted from 0.

    Attributes:
        family: Of the instructions.
        subgroup: Lanes.
        rows: How many rows of a fragment a lane has.
        width: Neighbours along the columns that it has.
        lanes: How many lanes share the columns of a row.
        distances: What the numbers of these lanes differ by, bit by bit.
    """

    family: str
    subgroup: int
    rows: int
    width: int
    lanes: int
    distances: tuple[int, ...]

    @property
    def wide(self) -> int:
        """Columns of the result of one instruction."""
        return self.width * self.lanes

    def instruction(self, element: str) -> MatrixInstruction | None:
        """Return the instruction for factors of a type."""
        found = (o for o in INSTRUCTIONS[self.family] if o.operand == element)
        return next((one for one in found if one.reduction == STEPS), None)

    def first_row(self, thread: ir.AffineExpr, fragments: int) -> ir.AffineExpr:
        """Return the first row of a lane, where subgroups have so many fragments."""
        number = ir.AffineExpr.get_floor_div(thread, self.subgroup)
        lane = thread % self.subgroup
        if self.family == "mma":
            own = ir.AffineExpr.get_floor_div(lane, self.lanes)
        else:
            own = lane % FRAGMENT_ROWS
        return number * (FRAGMENT_ROWS * fragments) + own

    def first_column(self, thread: ir.AffineExpr) -> ir.AffineExpr:
        """Return the first column of a lane."""
        lane = thread % self.subgroup
        if self.family == "mma":
            return lane % self.lanes * self.width
        return ir.AffineExpr.get_floor_div(lane, FRAGMENT_ROWS) * self.width

    def row(self, number: int) -> int:
        """Return how far a row of a lane is behind its first one."""
        return number * (FRAGMENT_ROWS // self.rows)

    def column(self, number: int) -> int:
        """Return how far a column of a lane is behind its first one."""
        return number // self.width * self.wide + number % self.width

    def columns(self, extent: int) -> int:
        """Return how many columns of so many a lane has, those behind the end too."""
        return -(-extent // STEPS) * STEPS // self.lanes

    def operand(self, fragment: int, step: int) -> list[list[tuple[int, int]]]:
        """Return the rows and columns that are the left operand of an instruction.

        One list of neighbours for each register, of the steps from 16 * step on.
        """
        column, row = step * STEP_COLUMNS, fragment * self.rows
        starts = range(column, column + STEP_COLUMNS, self.width)
        return [
            [(row + other, start + i) for i in range(self.width)]
            for start in starts
            for other in range(self.rows)
        ]

    def result(self, fragment: int, piece: int) -> list[tuple[int, int]]:
        """Return the rows and columns of what an instruction gives a lane."""
        row, column = fragment * self.rows, piece * self.width
        return [
            (row + other, column + i)
            for other in range(self.rows)
            for i in range(self.width)
        ]


LAYOUTS = {
    "mma": LaneLayout("mma", 32, 2, 2, 4, (1, 2)),
    "mfma": LaneLayout("mfma", 64, 1, 4, 4, (16, 32)),
}
"""By the family of matrix instructions."""
