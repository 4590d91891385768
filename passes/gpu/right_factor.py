"""Owns what lanes have of the right factor of a product, whose blocks are in a ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, memref, nvgpu, vector
from magweld.passes.gpu.lane_layouts import STEPS
from magweld.passes.gpu.linalg_structure import LoopNest
from magweld.passes.gpu.matrix_calls import vector_of
from magweld.passes.gpu.product_loops import ProductLoops
from magweld.passes.gpu.register_tiles import Lanes, applied, plus, sum_of
from magweld.passes.gpu.stream_rings import Ring
from magweld.passes.gpu.structure import element_bytes

# Rows of a matrix that `ldmatrix` loads, and its elements of a row.
_MATRIX = 8


@dataclass(frozen=True)
class RightFactor:
    """A block of the right factor in a slot.

    Attributes:
        nest: The loops of the product that reads it.
        loops: What they are.
        lanes: Who reads it.
        ring: Where it lies.
        first: The first row of the slot.
    """

    nest: LoopNest
    loops: ProductLoops
    lanes: Lanes
    ring: Ring
    first: Any

    @property
    def steps_side_by_side(self) -> bool:
        """Whether rows go along the reduction."""
        map_ = self.nest.maps[1 - self.loops.left]
        long = [n for n in map_ if n is not None and self.nest.extents[n] > 1]
        return long[-1] == self.loops.step

    def load(self, pieces: int, step: int) -> list[list[Any]]:
        """Build what a lane has of some pieces of the columns, of one step."""
        if self.lanes.layout.family == "mma":
            return self._load_matrices(pieces, step)
        return [self._load_vector(piece, step) for piece in range(pieces)]

    def _load_matrices(self, pieces: int, step: int) -> list[list[Any]]:
        """Load two matrices for a piece, of two pieces at once, by `ldmatrix`."""
        found = []
        for piece in range(0, pieces, 2):
            count = 2 * min(2, pieces - piece)
            type_ = ir.VectorType.get([count, 2], self.ring.block.element)
            loaded = nvgpu.LdMatrixOp(
                type_,
                self.ring.buffer,
                self._matrix_row(piece, step),
                not self.steps_side_by_side,
                count,
            ).result
            parts = [vector.ExtractOp(loaded, [], [n]).result for n in range(count)]
            found += [parts[n : n + 2] for n in range(0, count, 2)]
        return found

    def _matrix_row(self, piece: int, step: int) -> list[Any]:
        """Build where the row of a matrix begins that a lane names.

        Matrices are two steps of eight of the first piece, then those of the second.
        """
        lane = ir.AffineExpr.get_dim(0) % self.lanes.layout.subgroup
        matrix = ir.AffineExpr.get_floor_div(lane, _MATRIX)
        line = ir.AffineExpr.get_floor_div(matrix, 2) * _MATRIX
        deep = matrix % 2 * _MATRIX
        if self.steps_side_by_side:
            line = line + lane % _MATRIX
        else:
            deep = deep + lane % _MATRIX
        thread = [self.lanes.thread]
        at_line = plus(applied(line, thread), piece * _MATRIX)
        at_step = plus(applied(deep, thread), step * STEPS)
        if self.steps_side_by_side:
            return [sum_of(self.first, at_line), at_step]
        return [sum_of(self.first, at_step), at_line]

    def _load_vector(self, piece: int, step: int) -> list[Any]:
        """Load four steps of a column, in one go where they lie side by side."""
        lanes, layout = self.lanes, self.lanes.layout
        thread = ir.AffineExpr.get_dim(0)
        line = applied(thread % layout.wide, [lanes.thread])
        deep = applied(layout.first_column(thread), [lanes.thread])
        at_line, at_step = plus(line, piece * layout.wide), plus(deep, step * STEPS)
        element = self.ring.block.element
        if self.steps_side_by_side:
            type_ = ir.VectorType.get([layout.width], element)
            place = [sum_of(self.first, at_line), at_step]
            size = layout.width * element_bytes(element)
            return [
                vector.LoadOp(type_, self.ring.buffer, place, alignment=size).result
            ]
        values = [
            memref.LoadOp(
                self.ring.buffer, [sum_of(self.first, plus(at_step, n)), at_line]
            ).result
            for n in range(layout.width)
        ]
        return [vector_of(values)]
