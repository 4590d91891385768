"""Owns lower-matrix-instructions: products with a fragment become instructions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import affine, arith, gpu, ir, memref, nvgpu, vector
from magweld.dialects.tile_graph import FRAGMENT, WARPGROUPS
from magweld.passes.gpu.accumulator import Accumulator
from magweld.passes.gpu.fragment_product import Factor, FragmentProduct, in_parts
from magweld.passes.gpu.linalg_structure import linalg_operations_in
from magweld.passes.gpu.matrix_calls import multiplied, vector_of
from magweld.passes.gpu.matrix_loads import (
    LANE_WIDTH,
    can_load,
    is_transposed,
    matrix_loads,
)
from magweld.passes.gpu.row_alignment import start_alignment
from magweld.passes.gpu.structure import element_bytes, kernels_of
from magweld.passes.gpu.warpgroup_lowering import WarpgroupLowering
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error


@dataclass(frozen=True)
class LowerMatrixInstructions(Pass):
    """Replace products that have a `tile_graph.fragment` by matrix instructions.

    Each lane loads its operands from the tiles in workgroup memory, neighbours along
    the reduction at once where they lie side by side, and the elements of the
    accumulator that are its own. Factors in `tile_graph.matrix_loads` are loaded by
    `nvgpu.ldmatrix`, up to four matrices at once. One intrinsic for each result of the
    tile and step, or `nvvm.wgmma.mma_async` where warpgroups compute a product:

        %d = llvm.call_intrinsic "llvm.amdgcn.mfma.f32.16x16x16f16"(%a, %b, %c, ...)
    """

    name: ClassVar[str] = "lower-matrix-instructions"

    def run(self, module: Any) -> None:
        """Lower the products of all kernels."""
        for kernel in kernels_of(module):
            for op in linalg_operations_in(kernel):
                if FRAGMENT in op.operation.attributes:
                    with ir.InsertionPoint(op), op.location:
                        if WARPGROUPS in op.operation.attributes:
                            WarpgroupLowering(op).build()
                        else:
                            _Lowering(op).build()
                    op.operation.erase()


class _Lowering:
    """Lowers one product."""

    def __init__(self, op: Any) -> None:
        self._product = FragmentProduct(op)
        self._instruction = self._product.instruction
        self._thread = gpu.thread_id(gpu.Dimension.x)

    def build(self) -> None:
        """Build the instructions in front of the product."""
        one = self._instruction
        left, right = self._product.factors()
        rows, columns = self._product.tiles
        size = left.tile.type.shape[left.step]
        accumulator = Accumulator(self._product)
        sums = {
            tile: accumulator.load(*tile)
            for tile in itertools.product(range(rows), range(columns))
        }
        for step in range(0, size, one.reduction):
            lefts = self._load_all(left, rows, step)
            rights = self._load_all(right, columns, step)
            for row, column in sums:
                sums[row, column] = multiplied(
                    one.name, lefts[row], rights[column], sums[row, column]
                )
        for tile, values in sums.items():
            accumulator.store(*tile, values)

    # ---- factors ---------------------------------------------------------------------

    def _load_all(self, factor: Factor, pieces: int, step: int) -> list[list[ir.Value]]:
        """Load what a lane has of the pieces of a factor of its subgroup."""
        if factor.by_matrices:
            return self._load_matrices(factor, pieces, step)
        return [self._load(factor, piece, step) for piece in range(pieces)]

    def _load_matrices(
        self, factor: Factor, pieces: int, step: int
    ) -> list[list[ir.Value]]:
        """Load pieces by `ldmatrix`.

        Raises:
            PassError: Rows are not aligned; located at the product.
        """
        if not can_load(self._product, factor):
            raise located_error(
                self._product.op,
                "expected rows of 16 bytes at multiples of 16 in what is loaded as "
                f"matrices, got {factor.tile.type}",
            )
        element = ir.MemRefType(factor.tile.type).element_type
        lane = ir.AffineDimExpr.get(0) % self._instruction.subgroup
        transposed, operands = is_transposed(factor), []
        for load in matrix_loads(factor.positions, pieces):
            piece, line, inner = load.row(lane, transposed)
            number = factor.subgroup + piece * factor.subgroups
            places = [number, *in_parts(line, factor.side.extents)]
            at_line = [self._apply(place) for place in places]
            count = len(load.matrices)
            loaded = nvgpu.LdMatrixOp(
                ir.VectorType.get([count, LANE_WIDTH], element),
                factor.tile,
                self._indices(factor, at_line, self._apply(inner + step)),
                transposed,
                count,
            ).result
            operands += [
                vector.ExtractOp(loaded, [], [matrix]).result for matrix in range(count)
            ]
        size = len(factor.positions)
        return [operands[at : at + size] for at in range(0, len(operands), size)]

    def _load(self, operand: Factor, tile: int, step: int) -> list[ir.Value]:
        """Load what a lane has of one factor of one instruction."""
        one = self._instruction
        thread = ir.AffineDimExpr.get(0)
        number = operand.subgroup + tile * operand.subgroups
        loaded = []
        for position in operand.positions:
            line, inner = position(thread % one.subgroup)
            places = [number, *in_parts(line, operand.side.extents)]
            loaded.append(self._load_neighbours(operand, places, inner + step))
        return loaded

    def _load_neighbours(
        self, operand: Factor, line: Sequence[ir.AffineExpr], step: ir.AffineExpr
    ) -> ir.Value:
        width = self._instruction.width
        type_ = ir.MemRefType(operand.tile.type)
        at_line = [self._apply(part) for part in line]
        if width > 1 and _lies_side_by_side(operand, width):
            indices = self._indices(operand, at_line, self._apply(step))
            result = ir.VectorType.get([width], type_.element_type)
            size = width * element_bytes(type_.element_type)
            made: ir.Value = vector.LoadOp(
                result, operand.tile, indices, alignment=size
            ).result
            return made
        loaded = [
            memref.LoadOp(
                operand.tile, self._indices(operand, at_line, self._apply(step + i))
            ).result
            for i in range(width)
        ]
        return loaded[0] if width == 1 else vector_of(loaded)

    def _indices(
        self, operand: Factor, line: Sequence[ir.Value], step: ir.Value
    ) -> list[ir.Value]:
        rank = len(operand.tile.type.shape)
        zero = arith.ConstantOp(ir.IndexType.get(), 0).result
        known = dict(enumerate(line, operand.line)) | {operand.step: step}
        return [known.get(dimension, zero) for dimension in range(rank)]

    def _apply(self, expression: ir.AffineExpr) -> ir.Value:
        map_ = ir.AffineMap.get(1, 0, [expression])
        made: ir.Value = affine.AffineApplyOp(map_, [self._thread]).result
        return made


def _lies_side_by_side(operand: Factor, width: int) -> bool:
    """Tell whether neighbours along the reduction can be loaded at once, aligned."""
    type_ = ir.MemRefType(operand.tile.type)
    strides, _ = type_.get_strides_and_offset()
    others = [s for i, s in enumerate(strides) if i != operand.step]
    aligned = all(stride % width == 0 for stride in others)
    size = width * element_bytes(type_.element_type)
    begins = start_alignment(operand.tile) % size == 0
    return strides[operand.step] == 1 and aligned and begins
