"""Owns the slices of tensors at the position of a tile."""

from __future__ import annotations

from typing import Any

from magweld.bindings import affine, ir, linalg, tensor
from magweld.passes.analysis.pads import Pad
from magweld.passes.analysis.regions import ZERO, Clamps, Interval, LinearIndex

Box = tuple[Interval, ...]


class TileSlicer:
    """Makes slices whose offsets are sums of the loops over tiles.

    All of them are made in one block, each behind those before it.
    """

    def __init__(self, ivs: dict[int, Any], clamps: Clamps) -> None:
        """Take the variable of each loop of the root that is split, and the clamps."""
        self._ivs = ivs
        self._clamps = clamps

    def padded(self, value: Any, origin: Box, window: Box, pad: Pad, fill: Any) -> Any:
        """Return a window that may reach beyond a tensor, in scratch memory.

        What the window has of the tensor is moved to the inside of a buffer with the
        whole border around it. Near an edge it is more than is wanted and lies
        elsewhere, so that is where the window is read: all sizes are static.

        Args:
            value: A tile of the tensor.
            origin: The box that it is.
            window: The box that is wanted, of the same coordinates.
            pad: The border.
            fill: What the border is filled with.
        """
        shape = tuple(ir.RankedTensorType(pad.source.type).shape)
        sizes = [
            min(interval.size, extent)
            for interval, extent in zip(window, shape, strict=True)
        ]
        wanted = tuple(
            Interval(w.offset, n) for w, n in zip(window, sizes, strict=True)
        )
        inside = self._clamps.inside(wanted, shape)
        tile = self.slice(value, relative_box(inside, origin))
        element = ir.RankedTensorType(tile.type).element_type
        around = [
            low + size + high
            for low, size, high in zip(pad.low, sizes, pad.high, strict=True)
        ]
        buffer = linalg.fill(fill, outs=[tensor.EmptyOp(around, element).result])
        ones = [1] * len(sizes)
        filled = tensor.insert_slice(
            tile, buffer, [], [], [], list(pad.low), sizes, ones
        )
        shifted = tuple(
            Interval(LinearIndex(w.offset.terms, w.offset.constant + low), w.size)
            for w, low in zip(window, pad.low, strict=True)
        )
        return self.slice(filled, relative_box(shifted, inside))

    def enter(self, loop: int, position: Any) -> None:
        """Say where along a loop what follows is."""
        self._ivs[loop] = position

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
        terms = [(self._loop(loop), factor) for loop, factor in offset.terms]
        if offset.constant == 0 and len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        expr = ir.AffineExpr.get_constant(offset.constant)
        for position, (_, factor) in enumerate(terms):
            expr = ir.AffineExpr.get_dim(position) * factor + expr
        map_ = ir.AffineMap.get(len(terms), 0, [expr])
        return affine.AffineApplyOp(map_, [iv for iv, _ in terms]).result

    def _loop(self, number: int) -> Any:
        """The value of a loop over tiles, or of a clamp, made when it is wanted."""
        if number not in self._ivs:
            clamp = self._clamps[number]
            dim = ir.AffineExpr.get_dim(0)
            low = ir.AffineMap.get(1, 0, [dim, ir.AffineExpr.get_constant(0)])
            high = ir.AffineExpr.get_constant(clamp.highest)
            least = affine.AffineMaxOp(low, [self.index(clamp.offset)]).result
            high_map = ir.AffineMap.get(1, 0, [dim, high])
            self._ivs[number] = affine.AffineMinOp(high_map, [least]).result
        return self._ivs[number]

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
