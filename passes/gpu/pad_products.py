"""Owns pad-products: products on tiles that are no whole fragments get whole ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import arith, ir, linalg, scf, tensor
from magweld.passes.analysis.body_forms import factor_type, starts_at_zero
from magweld.passes.gpu.block_tensors import index_of, is_global, temporary
from magweld.passes.gpu.linalg_structure import (
    LoopNest,
    inputs_of,
    is_contraction,
    linalg_operations_in,
    loop_nest_of,
    matrix_loops,
)
from magweld.passes.gpu.structure import block_loop_of, kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.contractions import build_contraction
from magweld.passes.ir.tensor_slices import extract_slice
from magweld.passes.tiling.matrix_units import HALVES
from magweld.passes.tiling.padded_products import LINES, PaddedProduct

_SCHEDULED = "tile_graph.reduction_step"
_FOOTPRINT = "tile_graph.footprint"


@dataclass(frozen=True)
class PadProducts(Pass):
    """Let products on tiles of any rows and columns be products of whole fragments.

        linalg.contract ins(%x, %w : tensor<49x64xf16>, tensor<64x32xf16>)
                        outs(%zeros : tensor<49x32xf32>)
            =>   scf.for %k = 0 to 64 step 16 {
                   %rows = the first 49 of 64 rows in shared memory: %x[0, %k]
                   %columns = a tile in shared memory: %w[%k, 0]
                   %sums += %rows * %columns      of 64 x 32
                 }
                 the first 49 rows of %sums

    What lies behind the rows and columns is computed and left, at most as much as is
    wanted. The sums leave registers through shared memory, where what follows finds
    those that are wanted. A step of the reduction is as long as the schedule chose
    (`tile_graph.reduction_step` of the kernel).

    Products of halves are padded that begin at zero, of two matrices that are no tiles
    of the block, with a reduction of whole steps of instructions. Factors whose rows in
    memory are no whole fragments, and tiles with more sums than registers, or more
    bytes than `capacity` or than were planned, are left alone.
    """

    name: ClassVar[str] = "pad-products"

    family: Annotated[str, "instructions of the target: mfma, mma or none"] = ""
    capacity: Annotated[int, "bytes of shared memory that a block may use"] = 49152

    def run(self, module: Any) -> None:
        """Replace the products of all kernels."""
        if not self.family:
            return
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            most, capacity = _step_of(kernel), self._room(kernel)
            for op in linalg_operations_in(loop):
                product = _product_of(op)
                if op.operation.parent != loop.operation or product is None:
                    continue
                if product.bytes_of(most) <= capacity:
                    with ir.InsertionPoint(op), op.location:
                        made = product.build(most)
                    op.results[0].replace_all_uses_with(made)
                    op.operation.erase()

    def _room(self, kernel: Any) -> int:
        """Return the bytes that products may take: no more than were planned."""
        planned = kernel.attributes.get(_FOOTPRINT)
        if planned is None:
            return self.capacity
        return min(self.capacity, int(ir.IntegerAttr(planned).value))


def _step_of(kernel: Any) -> int:
    """Return the longest step of a reduction, 0 where the schedule says nothing."""
    chosen = kernel.attributes.get(_SCHEDULED)
    return 0 if chosen is None else int(ir.IntegerAttr(chosen).value)


def _product_of(op: Any) -> _Product | None:
    """Return the product that has to be padded, None for other operations."""
    if not is_contraction(op) or len(op.results) != 1:
        return None
    if factor_type(op.operation) not in HALVES or not starts_at_zero(op.operation):
        return None
    nest = loop_nest_of(op)
    loops = matrix_loops(nest)
    if loops is None or any(None in operand for operand in nest.maps):
        return None
    product = PaddedProduct(*(nest.extents[loop] for loop in loops))
    if not product.is_padded or not all(map(is_global, inputs_of(op))):
        return None
    last = [nest.maps[number][-1] for number in range(2)]
    if any(loop != loops[2] and nest.extents[loop or 0] % LINES for loop in last):
        return None
    return _Product(op, nest, loops, product)


@dataclass(frozen=True)
class _Product:
    """A product that is padded.

    Attributes:
        op: The contraction.
        nest: Its loops.
        loops: Those of the rows, of the columns and of the reduction.
        product: Its extents.
    """

    op: Any
    nest: LoopNest
    loops: tuple[int, int, int]
    product: PaddedProduct

    def bytes_of(self, most: int) -> int:
        """Return the bytes of shared memory that it takes with steps up to so much."""
        step = sum(self.product.step_bytes(line, most) for line in (0, 1))
        return max(step, self.product.sum_bytes)

    def build(self, most: int) -> ir.Value:
        """Return the result of the product, built at the insertion point."""
        f32 = ir.F32Type.get()
        step = self.product.step(most)
        padded = self._shape(-1, self.product.extents, 1)
        zeros = linalg.fill(
            arith.ConstantOp(f32, 0.0).result, outs=[temporary(padded, f32)]
        )
        bounds = (index_of(number) for number in (0, self.product.depth, step))
        loop = scf.ForOp(*bounds, [zeros])
        maps = [one.value for one in linalg.get_indexing_maps(self.op.operation)]
        with ir.InsertionPoint(loop.body):
            factors = [
                self._factor(number, loop.induction_variable, step)
                for number in range(2)
            ]
            sums = loop.inner_iter_args[0]
            total = build_contraction(factors, sums, maps, self.nest.reduction)
            scf.YieldOp([total])
        # A tile of its own: what follows has other shares of it than the products.
        through = linalg.copy(loop.results[0], outs=[temporary(padded, f32)])
        return _first(through, ir.RankedTensorType(self.op.results[0].type).shape)

    def _shape(self, operand: int, sides: tuple[int, int], step: int) -> list[int]:
        """Return the shape of an operand of so many rows and columns, and of a step."""
        rows, columns, reduction = self.loops
        extents = list(self.nest.extents)
        extents[rows], extents[columns], extents[reduction] = (*sides, step)
        loops = self.nest.maps[operand]
        return [extents[loop] for loop in loops if loop is not None]

    def _factor(self, number: int, first: ir.Value, step: int) -> ir.Value:
        """Return a tile that has a step of a factor, and what lies behind its lines."""
        value, loops = inputs_of(self.op)[number], self.nest.maps[number]
        own = self._shape(number, (self.product.rows, self.product.columns), step)
        padded = self._shape(number, self.product.extents, step)
        begin = [first if loop == self.loops[2] else 0 for loop in loops]
        part = extract_slice(value, begin, own, own)
        tile = temporary(padded, ir.RankedTensorType(value.type).element_type)
        if own == padded:
            copied: ir.Value = linalg.copy(part, outs=[tile])
            return copied
        copied = linalg.copy(part, outs=[_first(tile, own)])
        at, ones = [0] * len(own), [1] * len(own)
        made: ir.Value = tensor.insert_slice(copied, tile, [], [], [], at, own, ones)
        return made


def _first(tile: ir.Value, shape: Any) -> ir.Value:
    """Return the first elements of a tile along all of its dimensions."""
    sizes = list(shape)
    made: ir.Value = extract_slice(tile, [0] * len(sizes), sizes, sizes)
    return made
