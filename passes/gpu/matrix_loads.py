"""Owns `ldmatrix`: which factors it can load, and which lane names which row of them.

From the PTX ISA ("Warp-level matrix instructions: ldmatrix"): an instruction loads up
to four matrices of 8 x 8 elements of two bytes. Lane `l` names row `l % 8` of matrix
`l / 8`, 16 bytes that lie side by side at a multiple of 16. It receives elements
`2 * (l % 4)` and the next one of row `l / 4` of each matrix, or of column `l / 4` where
the matrices are transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir
from magweld.passes.gpu.fragment_product import Factor, FragmentProduct
from magweld.passes.gpu.matrix_instructions import Position
from magweld.passes.gpu.row_alignment import start_alignment
from magweld.passes.gpu.structure import element_bytes

# Rows of a matrix, and elements of a row.
MATRIX_SIZE = 8
# Elements of one matrix that a lane has.
LANE_WIDTH = 2
_LANES = 32
_MOST = 4
_ROW_BYTES = 16


@dataclass(frozen=True)
class MatrixLoad:
    """Matrices that one instruction loads, in the order of its registers.

    Attributes:
        matrices: Of each, the number of the piece of the factor that the subgroup has,
            and the line and step of the piece that it begins at.
    """

    matrices: tuple[tuple[int, int, int], ...]

    def row(
        self, lane: ir.AffineExpr, is_transposed: bool
    ) -> tuple[ir.AffineExpr, ir.AffineExpr, ir.AffineExpr]:
        """Return the piece, line and step at which the row begins that a lane names."""
        place = [self._along(lane, part) for part in range(3)]
        place[2 if is_transposed else 1] += lane % MATRIX_SIZE
        return place[0], place[1], place[2]

    def _along(self, lane: ir.AffineExpr, part: int) -> ir.AffineExpr:
        """Return a part of the place of the matrix of a lane.

        It is a sum over the bits of the number of the matrix.
        """
        first, *_ = starts = [matrix[part] for matrix in self.matrices]
        place: ir.AffineExpr = ir.AffineConstantExpr.get(first)
        for bit in (1, 2)[: len(starts) // 2]:
            number = ir.AffineExpr.get_floor_div(lane, MATRIX_SIZE * bit)
            place += (number % 2) * (starts[bit] - first)
        return place


def matrix_loads(positions: Sequence[Position], pieces: int) -> list[MatrixLoad]:
    """Return the loads of one step of a factor: pieces after each other, each whole.

    Args:
        positions: Where the operands of a lane begin in a piece.
        pieces: How many of them a subgroup has.
    """
    left = [(piece, *_origin(one)) for piece in range(pieces) for one in positions]
    loads = []
    while left:
        # As many as lie at regular distances: two or four of them always do.
        size = next(n for n in (_MOST, 2, 1) if _is_regular(left[:n], n))
        loads.append(MatrixLoad(tuple(left[:size])))
        left = left[size:]
    return loads


def can_load(product: FragmentProduct, factor: Factor) -> bool:
    """Tell whether `ldmatrix` loads what the lanes of a product have of a factor."""
    one = product.instruction
    type_ = ir.MemRefType(factor.tile.type)
    has_matrices = (
        one.subgroup == _LANES
        and one.width == LANE_WIDTH
        and element_bytes(type_.element_type) * MATRIX_SIZE == _ROW_BYTES
        and all(map(_is_matrix, factor.positions))
    )
    return (
        has_matrices
        and start_alignment(factor.tile) % _ROW_BYTES == 0
        and (_has_rows(factor, [factor.step]) or is_transposed(factor))
    )


def is_transposed(factor: Factor) -> bool:
    """Tell whether it is lines of a factor that lie side by side, not steps."""
    parts = range(factor.line + 1, factor.line + 1 + len(factor.side.extents))
    return _has_rows(factor, list(parts))


def _has_rows(factor: Factor, along: Sequence[int]) -> bool:
    """Tell whether dimensions are one of elements side by side, in aligned pieces."""
    type_ = ir.MemRefType(factor.tile.type)
    strides, _ = type_.get_strides_and_offset()
    distance = 1
    for dimension in reversed(along):
        if strides[dimension] != distance:
            return False
        distance *= type_.shape[dimension]
    others = [s for d, s in enumerate(strides) if d not in along]
    # Strides that are not known are negative numbers, of no such divisor.
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    pieces = (distance, *others)
    return all(size != marker and size % MATRIX_SIZE == 0 for size in pieces)


def _is_matrix(position: Position) -> bool:
    """Tell whether lanes have of an operand what `ldmatrix` gives them."""
    line, step = _origin(position)
    return all(
        _at(position, lane) == (line + lane // 4, step + lane % 4 * LANE_WIDTH)
        for lane in range(_LANES)
    )


def _is_regular(matrices: Sequence[tuple[int, int, int]], size: int) -> bool:
    """Tell whether there are so many, the last as far from the third as others are."""
    if len(matrices) != size:
        return False
    if size < _MOST:
        return True
    return all(a + d == b + c for a, b, c, d in zip(*matrices, strict=True))


def _origin(position: Position) -> tuple[int, int]:
    return _at(position, 0)


def _at(position: Position, lane: int) -> tuple[int, int]:
    found: tuple[Any, Any] = position(ir.AffineConstantExpr.get(lane))
    line, step = (ir.AffineConstantExpr(one).value for one in found)
    return line, step
