"""Owns tiles whose elements lie in registers of lanes, and others that they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from magweld.bindings import affine, arith, ir, memref
from magweld.passes.gpu.lane_layouts import STEPS, LaneLayout


class Along(StrEnum):
    """What a dimension of a tile is in a matrix."""

    ROWS = "rows"
    COLUMNS = "columns"
    NOTHING = "nothing"  # of extent one


@dataclass(frozen=True)
class Place:
    """Where along a dimension an element of a lane lies.

    Attributes:
        along: What the dimension is.
        number: Which of its rows or columns.
    """

    along: Along = Along.NOTHING
    number: int = 0


class Tile(Protocol):
    """A tensor of a kernel, as lanes have it."""

    def at(self, places: Sequence[Place]) -> Any:
        """Return the element of a lane at a place of each dimension."""


@dataclass
class Lanes:
    """The lanes of a block, and where their elements are in tiles.

    Attributes:
        layout: How subgroups share a matrix.
        fragments: Fragments of rows that each of them has.
        thread: Number of the thread.
        start: Where what all of a launch needs is made.
    """

    layout: LaneLayout
    fragments: int
    thread: Any
    start: Any
    _known: dict[str, Any] = field(default_factory=dict)

    def places(self, along: Along, extent: int) -> list[Place]:
        """Return the places of a lane along a dimension, those behind its end too."""
        if along is Along.NOTHING:
            return [Place()]
        count = self.layout.rows * self.fragments
        if along is Along.COLUMNS:
            count = self.layout.columns(extent)
        return [Place(along, number) for number in range(count)]

    def is_behind(self, place: Place, extent: int) -> bool:
        """Tell whether an element of some lane may lie behind the end."""
        if place.along is not Along.COLUMNS:
            return False
        return self.layout.column(place.number) + STEPS > extent and extent % STEPS > 0

    def position(self, place: Place) -> Any:
        """Build the number of an element along a dimension."""
        if place.along is Along.NOTHING:
            return constant_index(0)
        if place.along is Along.ROWS:
            first, more = self._first(place.along), self.layout.row(place.number)
        else:
            first, more = self._first(place.along), self.layout.column(place.number)
        return plus(first, more)

    def inside(self, place: Place, extent: int) -> Any:
        """Build whether an element lies in front of the end."""
        end = constant_index(extent)
        made: ir.Value = arith.CmpIOp(
            arith.CmpIPredicate.slt, self.position(place), end
        ).result
        return made

    def position_inside(self, place: Place, extent: int) -> Any:
        """Build the number of an element, or of the last one in front of the end."""
        position = self.position(place)
        if not self.is_behind(place, extent):
            return position
        return arith.MinSIOp(position, constant_index(extent - 1)).result

    def _first(self, along: Along) -> Any:
        if along not in self._known:
            number = ir.AffineExpr.get_dim(0)
            if along is Along.ROWS:
                first = self.layout.first_row(number, self.fragments)
            else:
                first = self.layout.first_column(number)
            with self.start():
                self._known[along] = applied(first, [self.thread])
        return self._known[along]


@dataclass(frozen=True)
class Splat:
    """One number everywhere; None for a tensor without contents."""

    value: Any

    def at(self, places: Sequence[Place]) -> Any:
        """Return the number."""
        return self.value


@dataclass(frozen=True)
class Held:
    """A tile in registers.

    Attributes:
        along: What each dimension is.
        shape: Its extents.
        values: The elements of a lane, by the place along each dimension.
    """

    along: tuple[Along, ...]
    shape: tuple[int, ...]
    values: dict[tuple[Place, ...], Any]

    def at(self, places: Sequence[Place]) -> Any:
        """Return an element."""
        return self.values[tuple(places)]


@dataclass(frozen=True)
class Stored:
    """A box of a tensor in global memory, which lanes load from.

    Attributes:
        memory: The tensor.
        offsets: Where it begins, numbers or values.
        sizes: Extents of the box.
        kept: The dimensions that the tile has.
        lanes: Who loads.
    """

    memory: Any
    offsets: tuple[Any, ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    lanes: Lanes

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the tile."""
        return tuple(self.sizes[dim] for dim in self.kept)

    def indices(self, places: Sequence[Place]) -> list[Any]:
        """Build the indices of an element in the tensor."""
        found = [as_value(offset) for offset in self.offsets]
        for dim, place in zip(self.kept, places, strict=True):
            if place.along is not Along.NOTHING:
                own = self.lanes.position_inside(place, self.sizes[dim])
                found[dim] = sum_of(self.offsets[dim], own)
        return found

    def at(self, places: Sequence[Place]) -> Any:
        """Load an element."""
        return memref.LoadOp(self.memory, self.indices(places)).result

    def distance(self, dim: int) -> int:
        """Return how far elements along a dimension of the tile lie apart."""
        strides, _ = ir.MemRefType(self.memory.type).get_strides_and_offset()
        return int(strides[self.kept[dim]])


@dataclass(frozen=True)
class Made:
    """A tile that is made where it is read, of what is not in registers."""

    element: Callable[[Sequence[Place]], Any]

    def at(self, places: Sequence[Place]) -> Any:
        """Make an element."""
        return self.element(places)


def along_of(shape: Sequence[int]) -> tuple[Along, ...]:
    """Return what the dimensions of a tile are: rows, then columns, the long ones."""
    names = iter((Along.ROWS, Along.COLUMNS))
    return tuple(
        next(names, Along.COLUMNS) if extent > 1 else Along.NOTHING for extent in shape
    )


def constant_index(number: int) -> Any:
    """Build a number."""
    return arith.ConstantOp(ir.IndexType.get(), number).result


def as_value(number: Any) -> Any:
    """Return a number as a value, which is built for one that is known."""
    return constant_index(number) if isinstance(number, int) else number


def applied(expression: ir.AffineExpr, operands: Sequence[Any]) -> Any:
    """Build an expression of values."""
    map_ = ir.AffineMap.get(len(operands), 0, [expression])
    return affine.AffineApplyOp(map_, list(operands)).result


def plus(value: Any, number: int) -> Any:
    """Build the sum of a value and a number."""
    return applied(ir.AffineExpr.get_dim(0) + number, [value]) if number else value


def sum_of(left: Any, right: Any) -> Any:
    """Build the sum of two indices, numbers or values."""
    if isinstance(left, int):
        return plus(right, left)
    return applied(ir.AffineExpr.get_dim(0) + ir.AffineExpr.get_dim(1), [left, right])
