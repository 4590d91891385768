"""Owns slices of a buffer that has come to lie otherwise, with their types."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir, memref
from magweld.passes.gpu.expanded_loops import split_dimensions
from magweld.passes.gpu.linalg_structure import is_structured
from magweld.passes.ir.utils import groups_of, users_of


def is_sliced(value: ir.Value) -> bool:
    """Tell whether a buffer is used by linalg, slices and dimensions that are split."""
    for user in users_of(value):
        if isinstance(user, memref.SubViewOp):
            kept = list(user.result.type.shape)
            if kept != list(user.static_sizes)[: len(kept)]:
                return False
        elif not isinstance(user, memref.ExpandShapeOp):
            if not is_structured(user):
                return False
            continue
        if not is_sliced(user.result):
            return False
    return True


def retype_slices(value: ir.Value) -> None:
    """Build the slices of a buffer again, whose rows lie further apart now."""
    for user in users_of(value):
        if not isinstance(user, memref.SubViewOp | memref.ExpandShapeOp):
            continue
        with ir.InsertionPoint(user), user.location:
            if isinstance(user, memref.ExpandShapeOp):
                sizes = user.result.type.shape
                parts = [[sizes[i] for i in group] for group in groups_of(user)]
                made = split_dimensions(value, parts)
            else:
                made = memref.SubViewOp(
                    _slice_type(user, value),
                    value,
                    list(user.offsets),
                    [],
                    [],
                    list(user.static_offsets),
                    list(user.static_sizes),
                    list(user.static_strides),
                ).result
        user.result.replace_all_uses_with(made)
        user.erase()
        retype_slices(made)


def _slice_type(subview: Any, source: ir.Value) -> ir.Type:
    """Return the type of a slice whose last dimensions may be dropped."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    strides, offset = ir.MemRefType(source.type).get_strides_and_offset()
    starts = list(subview.static_offsets)
    if marker in (offset, *starts):
        offset = marker
    else:
        offset += sum(a * b for a, b in zip(starts, strides, strict=True))
    type_ = ir.MemRefType(subview.result.type)
    steps = [a * b for a, b in zip(strides, subview.static_strides, strict=True)]
    layout = ir.StridedLayoutAttr.get(offset, steps[: len(type_.shape)])
    return ir.MemRefType.get(
        list(type_.shape), type_.element_type, layout, type_.memory_space
    )
