"""Owns which tensors a stream reads in blocks, and how it is walked, from the IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, scf, tensor
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    is_contraction,
    is_structured,
    loop_nest_of,
)
from magweld.passes.gpu.product_loops import ProductLoops
from magweld.passes.gpu.stream_warpgroups import can_swizzle
from magweld.passes.gpu.structure import VECTOR_BYTES, element_bytes
from magweld.passes.gpu.swizzled_tiles import SWIZZLE_ALIGNMENT
from magweld.passes.ir.constants import constant_number
from magweld.passes.ir.utils import located_error
from magweld.passes.tiling.stream_factors import ring_pitch


@dataclass(frozen=True)
class StreamedOperand:
    """A tensor of which a product of each block reads a part.

    Attributes:
        op: The slice that it reads.
        outer: The dimension of the tensor along which rows follow each other.
        inner: That along which they go, whose elements lie side by side.
        shape: Rows of a block, and elements of a row.
        streamed: Whether the stream goes over the rows, or along them.
    """

    op: tensor.ExtractSliceOp
    outer: int
    inner: int
    shape: tuple[int, int]
    streamed: bool

    def bytes(self, stages: int, *, has_warpgroups: bool) -> int:
        """Return how many bytes so many slots take, whole pieces of swizzled rows."""
        rows, columns = self.shape
        element = element_bytes(self.op.result.type.element_type)
        size = stages * rows * ring_pitch(columns, element) * element
        if not has_warpgroups:
            return size
        if can_swizzle(self.shape, element):
            return stages * rows * columns * element
        return -(-size // SWIZZLE_ALIGNMENT) * SWIZZLE_ALIGNMENT


@dataclass(frozen=True)
class StreamLoop:
    """The loop over the blocks of a stream.

    Attributes:
        op: The loop.
        upper: What its positions are below.
        step: Size of a block.
        extent: Of the stream; what the loop leaves of it is one smaller block.
        operands: What its products read in blocks, in their order.
    """

    op: scf.ForOp
    upper: int
    step: int
    extent: int
    operands: tuple[StreamedOperand, ...]

    @staticmethod
    def of(forall: Any) -> StreamLoop:
        """Return the stream of a loop over tiles.

        Raises:
            PassError: There is not one, or products read something else.
        """
        loops = [op for op in forall.body if isinstance(op, scf.ForOp)]
        if len(loops) != 1:
            raise located_error(forall, f"expected one stream, got {len(loops)}")
        (loop,) = loops
        bounds = [
            constant_number(value)
            for value in (loop.lowerBound, loop.upperBound, loop.step)
        ]
        if None in bounds or bounds[0]:
            raise located_error(loop, "expected a loop from zero with known bounds")
        upper, step = (int(bound) for bound in bounds[1:] if bound is not None)
        operands = tuple(_operand(op, loop) for op in products_in(loop.body))
        behind = [op for op in products_in(forall.body)]
        rest = _rest(behind[-1]) if behind else 0
        return StreamLoop(loop, upper, step, upper + rest, operands)

    def starts(self, stages: int, *, has_warpgroups: bool) -> list[int]:
        """Return where in shared memory each ring begins, and what all of them take."""
        found = [0]
        for operand in self.operands:
            found.append(
                found[-1] + operand.bytes(stages, has_warpgroups=has_warpgroups)
            )
        return found


def products_in(block: Any) -> Iterator[Any]:
    """Yield the products directly in a block."""
    for op in block:
        if is_structured(op) and is_contraction(op) and len(inputs_of(op)) == 2:
            yield op


def _rest(product: Any) -> int:
    """Return how much of the stream a product behind the loop sums over."""
    nest = loop_nest_of(product)
    return nest.extents[ProductLoops.of(product, nest).step]


def _operand(product: Any, loop: scf.ForOp) -> StreamedOperand:
    nest = loop_nest_of(product)
    value = inputs_of(product)[1 - ProductLoops.of(product, nest).left]
    op = None if isinstance(value, ir.BlockArgument) else value.owner.opview
    if not isinstance(op, tensor.ExtractSliceOp):
        raise located_error(product, "expected to read a part of a tensor")
    long = [dim for dim, size in enumerate(op.static_sizes) if size > 1]
    shape = list(op.source.type.shape)
    streamed = [dim for dim in long if _depends(_offset(op, dim), loop)]
    if len(long) != 2 or len(streamed) != 1 or not _lie_side_by_side(shape, long[-1]):
        raise located_error(op, "expected a matrix in blocks of its rows or columns")
    outer, inner = long
    columns = shape[inner] * element_bytes(op.result.type.element_type)
    if columns % VECTOR_BYTES:
        raise located_error(op, "expected rows at multiples of 16 bytes")
    sizes = (op.static_sizes[outer], op.static_sizes[inner])
    return StreamedOperand(op, outer, inner, sizes, streamed == [outer])


def _lie_side_by_side(shape: list[int], dim: int) -> bool:
    return all(extent == 1 for extent in shape[dim + 1 :])


def _offset(op: tensor.ExtractSliceOp, dim: int) -> Any:
    """Return where a slice begins, None for a number that is known."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = iter(op.offsets)
    for place, offset in enumerate(op.static_offsets):
        value = next(dynamic) if offset == marker else None
        if place == dim:
            return value
    return None


def _depends(value: Any, loop: scf.ForOp) -> bool:
    """Tell whether an index moves with a loop."""
    if value is None:
        return False
    if isinstance(value, ir.BlockArgument):
        return bool(value == loop.induction_variable)
    return any(_depends(operand, loop) for operand in value.owner.operands)
