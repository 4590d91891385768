"""Owns what a product with a fragment loads: its factors, and which lane has what."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, memref
from magweld.dialects.tile_graph import FRAGMENT, MATRIX_LOADS, FragmentAttr
from magweld.passes.gpu.linalg_structure import inputs_of, loop_nest_of, outputs_of
from magweld.passes.gpu.matrix_instructions import (
    MatrixInstruction,
    Position,
    Side,
    instruction_of,
)
from magweld.passes.ir.utils import located_error


@dataclass(frozen=True)
class Factor:
    """A factor: the tile that all threads see, and how it is indexed.

    Attributes:
        tile: A memref whose rows, or columns, are split into the parts of a fragment.
        line: The first dimension of these.
        side: The parts behind it.
        step: The dimension of the reduction.
        positions: Where the operands of a lane begin.
        subgroup: Number of the subgroup along the rows, or columns, by thread.
        subgroups: How many there are.
        by_matrices: Whether all lanes of a subgroup load it together, as matrices.
    """

    tile: ir.Value
    line: int
    side: Side
    step: int
    positions: tuple[Position, ...]
    subgroup: ir.AffineExpr
    subgroups: int
    by_matrices: bool


class FragmentProduct:
    """A product on the slices of a thread that has a `tile_graph.fragment`.

    Attributes:
        op: The product.
        instruction: What computes it.
        accumulator: The slice that it adds to.

    Raises:
        PassError: A factor is no slice of a tile; located at the product.
    """

    def __init__(self, op: Any) -> None:
        attribute = FragmentAttr(op.operation.attributes[FRAGMENT])
        self.op = op
        self.instruction: MatrixInstruction = instruction_of(attribute.instruction)
        self.accumulator = outputs_of(op)[0]
        along_rows, along_columns = map(int, attribute.subgroups)
        self._subgroups = along_rows, along_columns
        self._nest = loop_nest_of(op)

    @property
    def tiles(self) -> tuple[int, int]:
        """How many results of the instruction a subgroup has each way."""
        shape = self.accumulator.type.shape
        row, column = self.places
        return shape[row], shape[column]

    @property
    def places(self) -> tuple[int, int]:
        """The dimensions of the accumulator that count results."""
        one = self.instruction
        rank = len(self.accumulator.type.shape)
        column = rank - 1 - len(one.columns.extents)
        return column - 1 - len(one.rows.extents), column

    def factors(self) -> tuple[Factor, Factor]:
        """Return the factor of the rows and that of the columns."""
        one = self.instruction
        thread = ir.AffineDimExpr.get(0)
        along_columns = self._subgroups[1]
        number = ir.AffineExpr.get_floor_div(thread, one.subgroup)
        which = (
            ir.AffineExpr.get_floor_div(number, along_columns),
            number % along_columns,
        )
        loops = self._nest.output_maps[0]
        found: list[Factor] = []
        sides = (one.rows, one.left), (one.columns, one.right)
        for place, (side, positions), subgroup, count in zip(
            self.places, sides, which, self._subgroups, strict=True
        ):
            loop = loops[place]
            inputs = zip(inputs_of(self.op), self._nest.maps, strict=False)
            value, map_ = next((v, map_) for v, map_ in inputs if loop in map_)
            found.append(
                Factor(
                    self._tile_of(value),
                    map_.index(loop),
                    side,
                    map_.index(self._reduction()),
                    positions,
                    subgroup,
                    count,
                    by_matrices=len(found) in self._matrix_loads(),
                )
            )
        return found[0], found[1]

    def _matrix_loads(self) -> list[int]:
        attributes = self.op.operation.attributes
        if MATRIX_LOADS not in attributes:
            return []
        return list(ir.DenseI64ArrayAttr(attributes[MATRIX_LOADS]))

    def _reduction(self) -> int:
        nest = self._nest
        (loop,) = (i for i in nest.reduction if nest.extents[i] > 1)
        return loop

    def _tile_of(self, value: ir.Value) -> ir.Value:
        """Return the tile that the slice of a thread is taken of."""
        if isinstance(value, ir.BlockArgument) or not isinstance(
            value.owner.opview, memref.SubViewOp
        ):
            raise located_error(self.op, f"expected a slice of a tile, got {value}")
        tile: ir.Value = value.owner.operands[0]
        return tile


def in_parts(number: ir.AffineExpr, extents: Sequence[int]) -> Iterator[ir.AffineExpr]:
    """Yield the number along each part of a dimension, outermost first."""
    for place, extent in enumerate(extents):
        inner = math.prod(extents[place + 1 :])
        along = ir.AffineExpr.get_floor_div(number, inner) if inner > 1 else number
        yield along % extent if place else along
