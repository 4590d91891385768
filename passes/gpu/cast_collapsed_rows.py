"""Owns cast-collapsed-rows: dimensions that are one row are addressed as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from magweld.bindings import affine, ir, memref
from magweld.passes.gpu.expanded_loops import split_dimensions
from magweld.passes.gpu.structure import block_loop_of, kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import groups_of, operations_of


@dataclass(frozen=True)
class CastCollapsedRows(Pass):
    """Let views that join dimensions say where their rows begin.

        %t = memref.subview %x[0, 0, %i, 0] [1, 16, 4, 28] [1, 1, 1, 1]
        %r = memref.collapse_shape %t [[0], [1], [2, 3]] : ... into memref<1x16x112xf16>
            =>   %o = affine.apply (d0) -> (28 * d0)(%i)
                 %r = memref.reinterpret_cast %x to offset: [%o], sizes: [1, 16, 112]

    The element of a row would be found by a division and its remainder else, which
    hides neighbours as well. Arguments and their slices are cast. A tile of the block
    is allocated in the joined shape, and seen through `memref.expand_shape` by those
    that had it in parts. Views of anything else are left alone.
    """

    name: ClassVar[str] = "cast-collapsed-rows"

    def run(self, module: Any) -> None:
        """Replace the views of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            for op in operations_of(loop.operation, memref.CollapseShapeOp):
                with op.location:
                    _replace(op)


def _replace(op: memref.CollapseShapeOp) -> None:
    source = op.src
    if not isinstance(source, ir.BlockArgument) and isinstance(
        source.owner.opview, memref.AllocOp
    ):
        _allocate_joined(op, source.owner.opview)
        return
    start = _start_of(source)
    if start is not None:
        with ir.InsertionPoint(op):
            op.result.replace_all_uses_with(_cast(start, op.result.type))
        op.erase()


def _allocate_joined(op: memref.CollapseShapeOp, buffer: memref.AllocOp) -> None:
    """Replace a tile by one of the shape of a view of it."""
    shape = list(buffer.memref.type.shape)
    parts = [[shape[dim] for dim in dims] for dims in groups_of(op)]
    with ir.InsertionPoint(buffer):
        joined = memref.AllocOp(op.result.type, [], []).memref
        view = split_dimensions(joined, parts)
    op.result.replace_all_uses_with(joined)
    op.erase()
    buffer.memref.replace_all_uses_with(view)
    buffer.erase()


class _Start(NamedTuple):
    """Where a part of an argument begins.

    Attributes:
        argument: The argument.
        terms: Indices, each with how many elements its steps are.
        constant: Elements added to these.
    """

    argument: ir.Value
    terms: tuple[tuple[ir.Value, int], ...]
    constant: int


def _start_of(value: ir.Value) -> _Start | None:
    """Return where slices of an argument begin, None for other memrefs."""
    terms: list[tuple[ir.Value, int]] = []
    constant = 0
    while not isinstance(value, ir.BlockArgument):
        op = value.owner.opview
        if not isinstance(op, memref.SubViewOp):
            return None
        for offset, stride in _offsets(op):
            if isinstance(offset, int):
                constant += offset * stride
            else:
                terms.append((offset, stride))
        value = op.source
    return _Start(value, tuple(terms), constant) if _is_whole(value) else None


def _offsets(op: memref.SubViewOp) -> Iterator[tuple[ir.Value | int, int]]:
    """Yield the offset of a slice in each dimension, and the elements of a step."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    strides, _ = ir.MemRefType(op.source.type).get_strides_and_offset()
    dynamic = iter(op.offsets)
    for offset, stride in zip(op.static_offsets, strides, strict=True):
        yield next(dynamic) if offset == marker else offset, stride


def _is_whole(value: ir.Value) -> bool:
    """Tell whether a memref is all of its memory, rows behind rows."""
    type_ = ir.MemRefType(value.type)
    plain = ir.MemRefType.get(list(type_.shape), type_.element_type)
    is_plain: bool = type_.get_strides_and_offset() == plain.get_strides_and_offset()
    return is_plain


def _cast(start: _Start, type_: ir.Type) -> ir.Value:
    """Build a part of an argument as a memref of a type."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    result = ir.MemRefType(type_)
    strides, offset = result.get_strides_and_offset()
    offsets = []
    if offset == marker:
        sum_: ir.AffineExpr = ir.AffineConstantExpr.get(start.constant)
        for number, (_, stride) in enumerate(start.terms):
            sum_ += ir.AffineDimExpr.get(number) * stride
        map_ = ir.AffineMap.get(len(start.terms), 0, [sum_])
        values = [value for value, _ in start.terms]
        offsets.append(affine.AffineApplyOp(map_, values).result)
    made: ir.Value = memref.ReinterpretCastOp(
        result,
        start.argument,
        offsets,
        [],
        [],
        [offset],
        list(result.shape),
        strides,
    ).result
    return made
