"""Owns positions in tensors and tiles, as values of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import affine, ir
from magweld.passes.ir.tensor_slices import extract_slice
from magweld.passes.tiling.clamps import Clamp, Clamps
from magweld.passes.tiling.regions import ZERO, Interval, LinearIndex

Box = tuple[Interval, ...]


@dataclass(frozen=True)
class GridRows:
    """The loop over tiles whose extent a call tells.

    Attributes:
        loop: Its number in the root.
        extent: The number that stands for its extent.
        step: Size of the tiles.
    """

    loop: int
    extent: int
    step: int


class TileSlicer:
    """Makes positions and slices whose offsets are sums of the loops over tiles.

    All of them are made in one block, each behind those before it.
    """

    def __init__(
        self, ivs: dict[int, Any], clamps: Clamps, rows: GridRows | None = None
    ) -> None:
        """Say what offsets are sums of.

        Args:
            ivs: The variable of each loop of the root that is split.
            clamps: Offsets that are moved into a range.
            rows: The loop among these whose extent a call tells, if there is one.
        """
        self._ivs = ivs
        self._clamps = clamps
        self._rows = rows
        # Offsets that are this loop's variable.
        self._same = set() if rows is None else {rows.loop}

    def enter(self, loop: int, position: Any) -> None:
        """Say where along a loop what follows is."""
        self._ivs[loop] = position

    def inside(self, box: Box, shape: tuple[int, ...]) -> Box:
        """Move a box that is no larger than a tensor to where it lies inside."""
        return self._clamps.inside(box, shape)

    def slice(
        self, value: Any, region: Box, kept: tuple[int, ...] | None = None
    ) -> Any:
        """Return the box of a tile; the tile itself if that is all of it.

        Args:
            value: The tile.
            region: The box.
            kept: The dimensions of the result, all by default; the box has extent one
                along the others.
        """
        shape = kept_sizes(region, kept)
        if shape == list(ir.RankedTensorType(value.type).shape):
            return value
        offsets = [interval.offset for interval in region]
        return extract_slice(
            value,
            [self.index(o) if o.terms else o.constant for o in offsets],
            kept_sizes(region, None),
            shape,
        )

    def index(self, offset: LinearIndex) -> Any:
        """Return an offset as a value of type index."""
        loops = [loop for loop, _ in offset.terms]
        if len(loops) == 1 and offset == LinearIndex(((loops[0], 1),)):
            return self._loop(loops[0])
        map_ = ir.AffineMap.get(len(loops), 0, [_expression(offset, loops)])
        return affine.AffineApplyOp(map_, [self._loop(loop) for loop in loops]).result

    def begin(self, region: Box) -> tuple[tuple[Any, ...], Any]:
        """Return where a box begins: positions, and the map from them to offsets."""
        offsets = [interval.offset for interval in region]
        loops = sorted({loop for offset in offsets for loop, _ in offset.terms})
        expressions = [_expression(offset, loops) for offset in offsets]
        map_ = ir.AffineMap.get(len(loops), 0, expressions)
        return tuple(self._loop(loop) for loop in loops), map_

    def _loop(self, number: int) -> Any:
        """The value of a loop over tiles, or of a clamp, made when it is wanted."""
        if number not in self._ivs:
            clamp = self._clamps[number]
            if self._lies_inside(clamp):
                self._same.add(number)
                self._ivs[number] = self.index(clamp.offset)
                return self._ivs[number]
            dim = ir.AffineExpr.get_dim(0)
            low = ir.AffineMap.get(1, 0, [dim, ir.AffineExpr.get_constant(0)])
            high = ir.AffineExpr.get_constant(clamp.highest)
            least = affine.AffineMaxOp(low, [self.index(clamp.offset)]).result
            high_map = ir.AffineMap.get(1, 0, [dim, high])
            self._ivs[number] = affine.AffineMinOp(high_map, [least]).result
        return self._ivs[number]

    def _lies_inside(self, clamp: Clamp) -> bool:
        """Whether an offset is in its range, whatever the extent of the rows is."""
        if self._rows is None or len(clamp.offset.terms) != 1:
            return False
        ((loop, factor),) = clamp.offset.terms
        self._loop(loop)
        is_row = factor == 1 and not clamp.offset.constant and loop in self._same
        return is_row and clamp.highest == self._rows.extent - self._rows.step


def kept_sizes(region: Box, kept: tuple[int, ...] | None) -> list[int]:
    """Return the extents of a box, only those of the dimensions that are kept."""
    sizes = [interval.size for interval in region]
    return sizes if kept is None else [sizes[dim] for dim in kept]


def whole_box(shape: tuple[int, ...]) -> Box:
    """Return the box that is all of a tensor."""
    return tuple(Interval(ZERO, extent) for extent in shape)


def relative_box(region: Box, origin: Box) -> Box:
    """Return where `region` lies inside a tile that starts at `origin`."""
    return tuple(
        Interval(_difference(a.offset, b.offset), a.size)
        for a, b in zip(region, origin, strict=True)
    )


def _expression(offset: LinearIndex, loops: list[int]) -> Any:
    """An offset as an expression of dims that stand for loops."""
    expression = ir.AffineExpr.get_constant(offset.constant)
    for loop, factor in offset.terms:
        expression = ir.AffineExpr.get_dim(loops.index(loop)) * factor + expression
    return expression


def _difference(left: LinearIndex, right: LinearIndex) -> LinearIndex:
    merged = dict(left.terms)
    for loop, factor in right.terms:
        merged[loop] = merged.get(loop, 0) - factor
    terms = tuple(sorted((k, v) for k, v in merged.items() if v))
    return LinearIndex(terms, left.constant - right.constant)
