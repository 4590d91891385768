"""Owns the slices of tensors at the position of a tile."""

from __future__ import annotations

from typing import Any

from magweld.bindings import affine, ir, tensor
from magweld.passes.analysis.regions import ZERO, Interval, LinearIndex

Box = tuple[Interval, ...]


class TileSlicer:
    """Makes slices whose offsets are sums of the loops over tiles."""

    def __init__(self, ivs: dict[int, Any]) -> None:
        """Take the induction variable of each loop of the root that is split."""
        self._ivs = ivs

    def slice(
        self, value: Any, region: Box, kept: tuple[int, ...] | None = None
    ) -> Any:
        """Return the box of a tensor; the tensor itself if that is all of it.

        Args:
            value: The tensor.
            region: The box.
            kept: The dimensions of the result, all by default; the box has extent one
                along the others.
        """
        type_ = ir.RankedTensorType(value.type)
        sizes = [interval.size for interval in region]
        shape = sizes if kept is None else [sizes[dim] for dim in kept]
        if shape == list(type_.shape):
            return value
        static, dynamic = self._offsets(region)
        result = ir.RankedTensorType.get(shape, type_.element_type)
        return tensor.extract_slice(
            result, value, dynamic, [], [], static, sizes, [1] * len(sizes)
        )

    def insert(self, value: Any, destination: Any, region: Box) -> None:
        """Insert a tile into a destination, in the terminator of the loop."""
        sizes = [interval.size for interval in region]
        # The terminator's block takes insertions only: offsets are made before it.
        with ir.InsertionPoint(ir.InsertionPoint.current.block.owner):
            static, dynamic = self._offsets(region)
        tensor.parallel_insert_slice(
            value, destination, dynamic, [], [], static, sizes, [1] * len(sizes)
        )

    def index(self, offset: LinearIndex) -> Any:
        """Return an offset as a value of type index."""
        terms = [(self._ivs[loop], factor) for loop, factor in offset.terms]
        if offset.constant == 0 and len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        expr = ir.AffineExpr.get_constant(offset.constant)
        for position, (_, factor) in enumerate(terms):
            expr = ir.AffineExpr.get_dim(position) * factor + expr
        map_ = ir.AffineMap.get(len(terms), 0, [expr])
        return affine.AffineApplyOp(map_, [iv for iv, _ in terms]).result

    def _offsets(self, region: Box) -> tuple[list[int], list[Any]]:
        """Static offsets, with the marker where the dynamic ones go."""
        marker = ir.ShapedType.get_dynamic_stride_or_offset()
        static: list[int] = []
        dynamic: list[Any] = []
        for interval in region:
            if interval.offset.terms:
                static.append(marker)
                dynamic.append(self.index(interval.offset))
            else:
                static.append(interval.offset.constant)
        return static, dynamic


def whole_box(shape: tuple[int, ...]) -> Box:
    """Return the box that is all of a tensor."""
    return tuple(Interval(ZERO, extent) for extent in shape)


def relative_box(region: Box, origin: Box) -> Box:
    """Return where `region` lies inside a tile that starts at `origin`."""
    return tuple(
        Interval(_difference(a.offset, b.offset), a.size)
        for a, b in zip(region, origin, strict=True)
    )


def _difference(left: LinearIndex, right: LinearIndex) -> LinearIndex:
    merged = dict(left.terms)
    for loop, factor in right.terms:
        merged[loop] = merged.get(loop, 0) - factor
    terms = tuple(sorted((k, v) for k, v in merged.items() if v))
    return LinearIndex(terms, left.constant - right.constant)
