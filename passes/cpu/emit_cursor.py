"""Owns where in a loop nest code is being emitted, and addresses from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from magweld.bindings import ir
from magweld.passes.cpu.emit_body import IndexOf
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_index import Index
from magweld.passes.cpu.emit_vectors import turn_block
from magweld.passes.cpu.loop_nest import LoopNest
from magweld.passes.cpu.register_tile import (
    NONE,
    READ_ALONG,
    Piece,
    RegisterTile,
    split_extent,
)

Point = tuple[int, ...]


class Cursor:
    """The current piece and position of every loop of a nest.

    A point of the register tile is a mapping from loops to whole steps: vectors of
    the vectorised loop, iterations of the others.
    """

    def __init__(self, nest: LoopNest, tile: RegisterTile) -> None:
        self.nest = nest
        self.tile = tile
        self.parallel = [d for d in tile.order if nest.parallel[d]]
        self.reductions = [d for d in tile.order if not nest.parallel[d]]
        self.pieces: dict[int, Piece] = {}
        self.positions: dict[int, Index] = {}

    def split(self, dim: int, extent: int) -> tuple[Piece, ...]:
        """Cut a loop of the nest into pieces of its register tile."""
        lanes = self.tile.lanes if dim == self.tile.vector_dim else 1
        rest = extent % lanes if self.tile.rest is not None else 0
        masked = self.tile.masked and dim == self.tile.vector_dim
        unroll = self.tile.unroll[dim]
        pieces = split_extent(extent - rest, unroll, lanes, masked=masked)
        return (*pieces, Piece(extent - rest, extent, rest, 1)) if rest else pieces

    def is_rest(self, dim: int) -> bool:
        """Whether a loop is where it has a register tile of its own."""
        own = self.tile.rest is not None and dim == self.tile.vector_dim
        return own and self.pieces[dim].lanes < self.tile.lanes

    def points(self, dims: Sequence[int]) -> Iterator[Point]:
        """Yield the points of the register tile in some loops."""
        yield from product(*(range(self.pieces[d].count) for d in dims))

    def lanes(self, dims: Sequence[int]) -> int:
        """Return the current number of lanes, 1 unless the loops are vectorised."""
        vector = self.tile.vector_dim
        return self.pieces[vector].lanes if vector in dims else 1

    def vector_stride(self, buffer: FlatBuffer) -> int:
        """Return the elements between the lanes of a vector."""
        vector = self.tile.vector_dim
        return 0 if vector == NONE else buffer.strides[vector]

    def load(
        self, buffer: FlatBuffer, position: Mapping[int, int], lanes: int
    ) -> ir.Value:
        """Load what a buffer has at a point; a scalar if it is equal in all lanes."""
        index, stride = self.index(buffer, position), self.vector_stride(buffer)
        filled = self._filled(position, lanes)
        return buffer.load(index, lanes, stride, filled)

    def store(
        self,
        buffer: FlatBuffer,
        value: ir.Value,
        position: Mapping[int, int],
        lanes: int,
    ) -> None:
        """Store a value into a buffer at a point."""
        index, stride = self.index(buffer, position), self.vector_stride(buffer)
        filled = self._filled(position, lanes)
        buffer.store(value, index, lanes, stride, filled)

    def _filled(self, position: Mapping[int, int], lanes: int) -> int:
        """Return how many lanes at a point are iterations of the loop."""
        vector = self.tile.vector_dim
        if lanes == 1 or not self.tile.masked:
            return lanes
        return self.pieces[vector].filled(position[vector])

    def index(self, buffer: FlatBuffer, position: Mapping[int, int]) -> Index:
        """Emit the index of a point in a buffer."""
        index = buffer.origin
        for dim, stride in enumerate(buffer.strides):
            if stride and dim in position:
                index = index.plus(self._iteration(dim, position).times(stride))
        return index

    def loop_index(self, position: Mapping[int, int]) -> IndexOf:
        """Return what `linalg.index` stands for at a point."""

        def index_of(dim: int) -> tuple[Index, int]:
            groups = self.tile.dims
            group = next((g for g, dims in enumerate(groups) if dim in dims), NONE)
            if group == NONE:
                return Index(), 1
            return self._iteration(group, position), self.lanes((group,))

        return index_of

    def _iteration(self, dim: int, position: Mapping[int, int]) -> Index:
        return self.positions[dim].shifted(position[dim] * self.pieces[dim].lanes)


class Fetcher:
    """Loads the inputs of one register tile, each of them once."""

    def __init__(
        self, cursor: Cursor, operands: Sequence[Operand], parallel: Sequence[int]
    ) -> None:
        self.cursor = cursor
        self.operands = operands
        self.parallel = parallel
        self.fetched: dict[tuple[int, Point], ir.Value] = {}

    def fetch(self, number: int, position: Mapping[int, int], lanes: int) -> ir.Value:
        """Return an operand at a point: a vector, or a scalar equal in all lanes."""
        buffer = self.operands[number]
        if not isinstance(buffer, FlatBuffer):
            return buffer
        moving = [d for d, stride in enumerate(buffer.strides) if stride]
        key = (number, tuple(position[d] for d in moving))
        if key not in self.fetched:
            self._load(number, buffer, position, lanes, moving)
        return self.fetched[key]

    def _load(
        self,
        number: int,
        buffer: FlatBuffer,
        position: Mapping[int, int],
        lanes: int,
        moving: Sequence[int],
    ) -> None:
        turned = self._turned_dim(buffer, lanes)
        if turned == NONE:
            key = (number, tuple(position[d] for d in moving))
            self.fetched[key] = self.cursor.load(buffer, position, lanes)
            return
        stride = self.cursor.vector_stride(buffer)
        corner = self.cursor.index(buffer, {**position, turned: 0})
        along = buffer.strides[turned]
        rows = [
            buffer.load(corner.shifted(k * stride), lanes, along) for k in range(lanes)
        ]
        for k, value in enumerate(turn_block(rows)):
            at = {**position, turned: k}
            self.fetched[number, tuple(at[d] for d in moving)] = value

    def _turned_dim(self, buffer: FlatBuffer, lanes: int) -> int:
        """Return the loop along which a block is read and then turned, or NONE."""
        vector = self.cursor.tile.vector_dim
        if lanes == 1 or self.cursor.vector_stride(buffer) in (0, *READ_ALONG):
            return NONE
        for dim in self.parallel:
            square = dim != vector and self.cursor.pieces[dim].count == lanes
            if square and buffer.strides[dim] in READ_ALONG:
                return dim
        return NONE
