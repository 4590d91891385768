"""Owns the strided slices through which the threads of a block share a buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, memref
from magweld.passes.gpu.structure import is_thread_loop


@dataclass(frozen=True)
class SliceDimension:
    """How one dimension of a buffer is shared.

    Attributes:
        loop: Dimension of the thread loop whose iteration is the offset; None if
            every thread starts at 0.
        size: Elements that one thread has.
        stride: Distance between them.
    """

    loop: int | None
    size: int
    stride: int


@dataclass(frozen=True)
class ThreadSlice:
    """The part of `base` that a thread of a thread loop addresses.

    Two equal values are the same part in the same thread.

    Attributes:
        base: The sliced memref.
        trips: Trip counts of the thread loop.
        dimensions: One entry a dimension of `base`.
    """

    base: Any
    trips: tuple[int, ...]
    dimensions: tuple[SliceDimension, ...]

    @property
    def is_disjoint(self) -> bool:
        """Tell whether no element belongs to two threads."""
        used = {d.loop for d in self.dimensions}
        return self.has_distinct_rows and all(
            loop in used for loop, count in enumerate(self.trips) if count > 1
        )

    @property
    def has_distinct_rows(self) -> bool:
        """Tell whether threads that differ in a loop that it uses share no element."""
        return all(
            d.loop is None or d.stride >= self.trips[d.loop] for d in self.dimensions
        )


def thread_slice_of(value: ir.Value, thread_loop: Any) -> ThreadSlice | None:
    """Read the slice that a memref in a thread loop is, None if it has another form.

    A memref from outside of the loop is the slice that every thread shares.
    """
    trips = tuple(thread_loop.staticUpperBound)
    subview = None if isinstance(value, ir.BlockArgument) else value.owner.opview
    is_inside = (
        isinstance(subview, memref.SubViewOp)
        and subview.operation.parent == thread_loop.operation
    )
    if subview is None or not is_inside:
        sizes = tuple(SliceDimension(None, s, 1) for s in value.type.shape)
        return ThreadSlice(value, trips, sizes)
    dimensions = _dimensions(subview, thread_loop)
    if dimensions is None:
        return None
    return ThreadSlice(subview.source, trips, dimensions)


def _dimensions(subview: Any, thread_loop: Any) -> tuple[SliceDimension, ...] | None:
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = iter(subview.offsets)
    ivs = list(thread_loop.induction_variables)
    found = []
    for offset, size, stride in zip(
        subview.static_offsets,
        subview.static_sizes,
        subview.static_strides,
        strict=True,
    ):
        start = next(dynamic) if offset == marker else None
        if start is None and offset != 0:
            return None
        if start is not None and start not in ivs:
            return None
        loop = None if start is None else ivs.index(start)
        found.append(SliceDimension(loop, size, stride))
    return tuple(found)


def thread_loop_around(op: Any) -> Any | None:
    """Return the thread loop that `op` is nested in, None if there is none."""
    parent = op.operation.parent
    while parent is not None and not is_thread_loop(parent.opview):
        parent = parent.parent
    return None if parent is None else parent.opview


def strided_subview(
    source: ir.Value,
    offsets: list[ir.Value | None],
    sizes: list[int],
    strides: list[int],
    dropped: int = 0,
) -> ir.Value:
    """Build `memref.subview` with offsets that are values, None standing for 0.

    Args:
        source: A memref of static shape.
        offsets: One entry a dimension.
        sizes: One entry a dimension.
        strides: One entry a dimension.
        dropped: How many dimensions, from the end and of size 1, the result lacks.
    """
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    type_ = ir.MemRefType(source.type)
    source_strides, source_offset = type_.get_strides_and_offset()
    moved = source_offset == marker or any(o is not None for o in offsets)
    rank = len(sizes) - dropped
    layout = ir.StridedLayoutAttr.get(
        marker if moved else source_offset,
        [a * b for a, b in zip(source_strides, strides, strict=True)][:rank],
    )
    result = ir.MemRefType.get(
        sizes[:rank], type_.element_type, layout, type_.memory_space
    )
    made: ir.Value = memref.SubViewOp(
        result,
        source,
        [o for o in offsets if o is not None],
        [],
        [],
        [0 if o is None else marker for o in offsets],
        sizes,
        strides,
    ).result
    return made
