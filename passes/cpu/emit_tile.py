"""Owns the emission of one register tile: its accumulators, reductions and stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from magweld.bindings import ir
from magweld.passes.cpu.emit_beside_sums import fetch_beside_sums
from magweld.passes.cpu.emit_body import Body, Combiner
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_cursor import Cursor, Fetcher, Point
from magweld.passes.cpu.emit_finish import Finish
from magweld.passes.cpu.emit_index import Index, emit_carrying_loop
from magweld.passes.cpu.emit_prefetch import Prefetch
from magweld.passes.cpu.emit_vectors import (
    broadcast,
    fold_lanes,
    fold_values,
    splat,
    with_lanes,
)
from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.cpu.register_tile import NONE, RegisterTile

State = list[ir.Value | None]


@dataclass(frozen=True)
class Work:
    """What every register tile of a nest computes.

    Attributes:
        body: Emits the body of the operation on scalars or vectors.
        combiners: What folds values into each output, for reductions across lanes.
        first: What a total begins with; None for what the output holds.
        finish: Takes a total before it is stored, or instead.
        ahead: What is fetched meanwhile for what runs next.
    """

    body: Body
    combiners: Sequence[Combiner] = ()
    first: ir.Value | None = None
    finish: Finish | None = None
    ahead: Prefetch | None = None


@dataclass(frozen=True)
class TileEmitter:
    """Emits the register tile at the place of a cursor.

    Its accumulators are carried by the reduction loops as SSA values and so stay in
    registers. The state of a point of the tile is, for each output, one partial vector
    for each unrolled vector of a vectorised reduction, then the total.

    Attributes:
        cursor: Where the tile is.
        operands: Inputs, then outputs.
        work: What it computes.
        prefetches: What is fetched beside the products.
    """

    cursor: Cursor
    operands: Sequence[Operand]
    work: Work
    prefetches: Sequence[Prefetch] = ()

    @property
    def nest(self) -> LoopNest:
        """The nest around the tile."""
        return self.cursor.nest

    @property
    def tile(self) -> RegisterTile:
        """The decision how the nest is cut."""
        return self.cursor.tile

    @property
    def across(self) -> bool:
        """Whether lanes are iterations of a reduction."""
        return self.tile.vector_dim in self.cursor.reductions

    @property
    def outputs(self) -> list[FlatBuffer]:
        """Buffers of the outputs."""
        buffers = self.operands[len(self.nest.inputs) :]
        return [b for b in buffers if isinstance(b, FlatBuffer)]

    def emit(self) -> None:
        """Emit the tile."""
        points = list(self.cursor.points(self.cursor.parallel))
        state: State = []
        for point in points:
            state += self._initial(point)
        if not self.across:
            self._fetch_far(points)
        state = self._emit_reductions(0, points, state)
        width = len(state) // len(points)
        if self.work.finish is not None:
            self.work.finish.begin(self.cursor, self.cursor.parallel)
        for number, point in enumerate(points):
            self._store(point, state[number * width : (number + 1) * width])

    def _fetch_far(self, points: Sequence[Point]) -> None:
        """Fetch what is read and written behind the sums while they are made."""
        finish = self.work.finish
        written = [] if finish is None else [*finish.outputs]
        if self.work.first is not None and (finish is None or finish.keeps):
            written += self.outputs
        along = [dict(zip(self.cursor.parallel, p, strict=True)) for p in points]
        reads = [] if finish is None else finish.reads
        fetch_beside_sums(self.cursor, along, reads, written)

    def _initial(self, point: Point) -> State:
        state: State = []
        lanes = self.cursor.lanes(self.cursor.parallel)
        position = dict(zip(self.cursor.parallel, point, strict=True))
        for number, buffer in enumerate(self.outputs):
            if self.across:
                kind = with_lanes(buffer.element, self.tile.lanes)
                partial = splat(kind, self.work.combiners[number].neutral())
                state += [partial] * self.tile.unroll[self.tile.vector_dim]
            if self.work.first is not None:
                state.append(broadcast(self.work.first, lanes))
            elif self.nest.outputs[number].used or self.cursor.reductions:
                state.append(self.cursor.load(buffer, position, lanes))
            else:
                state.append(None)
        return state

    def _store(self, point: Point, state: State) -> None:
        position = dict(zip(self.cursor.parallel, point, strict=True))
        lanes = self.cursor.lanes(self.cursor.parallel)
        width = len(state) // len(self.outputs)
        totals = []
        for number in range(len(self.outputs)):
            *partials, total = state[number * width : (number + 1) * width]
            if partials:
                combiner = self.work.combiners[number]
                vector = fold_values(partials, combiner)
                total = combiner(total, fold_lanes(vector, combiner))
            if self.work.finish is not None:
                self.work.finish.emit(position, total, lanes)
            totals.append(total)
        if self.work.finish is None or self.work.finish.keeps:
            self._store_totals(totals, position, lanes)

    def _store_totals(
        self, totals: Sequence[ir.Value], position: dict[int, int], lanes: int
    ) -> None:
        """Store the results of a point; those that lie in turns together."""
        number = 0
        while number < len(totals):
            buffer, *others = self.outputs[number:]
            stride = self.cursor.vector_stride(buffer)
            together = stride == 2 and lanes > 1 and others
            if together and buffer.is_before(others[0]):
                pair = [
                    broadcast(total, lanes) for total in totals[number : number + 2]
                ]
                buffer.store_pairs(pair, self.cursor.index(buffer, position))
                number += 2
            else:
                self.cursor.store(buffer, totals[number], position, lanes)
                number += 1

    # ---- reductions -----------------------------------------------------------------

    def _emit_reductions(
        self, level: int, points: Sequence[Point], state: State
    ) -> State:
        if level == len(self.cursor.reductions):
            return self._emit_points(points, state)
        dim, fetched = self.cursor.reductions[level], self._fetched(len(points))
        for piece in self.cursor.split(dim, self.nest.extents[dim]):

            def step(index: Index, values: State) -> State:
                self.cursor.positions[dim] = index
                for prefetch, starts in fetched:
                    prefetch.emit(starts, index)
                return self._emit_reductions(level + 1, points, values)

            self.cursor.pieces[dim] = piece
            state = emit_carrying_loop(piece, state, step)
        return state

    def _fetched(self, products: int) -> list[tuple[Prefetch, list[Index]]]:
        """Emit where the prefetches of this register tile begin."""
        if not self.prefetches or self.cursor.parallel[-1] == self.tile.vector_dim:
            return []
        return [
            (prefetch, prefetch.begin(self.cursor, self.cursor.parallel[-1], products))
            for prefetch in self.prefetches
        ]

    def _emit_points(self, points: Sequence[Point], state: State) -> State:
        fetcher = Fetcher(self.cursor, self.operands, self.cursor.parallel)
        width = len(state) // len(points)
        state = list(state)
        for inner, number in self._steps(points):
            position = self._position(points[number], inner)
            block = slice(number * width, (number + 1) * width)
            state[block] = self._emit_point(position, state[block], fetcher)
        return state

    def _position(self, point: Point, inner: Point) -> dict[int, int]:
        """Return where a point of the tile and one of the reductions is."""
        position = dict(zip(self.cursor.parallel, point, strict=True))
        position.update(zip(self.cursor.reductions, inner, strict=True))
        return position

    def _steps(self, points: Sequence[Point]) -> list[tuple[Point, int]]:
        """Return the points of the reductions with those of the tile, in order.

        Where a window is written out, what it reads of an image is read in its order in
        memory: each vector is done with when all results that it is a part of have it,
        and registers need not hold the vectors of all rows. Every result still adds its
        products in the order of the reductions.
        """
        inner = list(self.cursor.points(self.cursor.reductions))
        steps = [(point, n) for point in inner for n in self._visited(points)]
        image = self._image()
        if image is None or self.across or len(inner) == 1:
            return steps

        def address(step: tuple[Point, int]) -> int:
            position = self._position(points[step[1]], step[0])
            return sum(
                image.strides[d] * at * self.cursor.pieces[d].lanes
                for d, at in position.items()
            )

        along = sorted(steps, key=address)
        own = [[i for i, m in along if m == n] for n in range(len(points))]
        return along if all(found == inner for found in own) else steps

    def _image(self) -> Access | None:
        """Return what a product reads as vectors, if its other factor stays the same.

        That is the weight of one channel; others would be needed again and again.
        """
        if not self.nest.product or self.tile.vector_dim == NONE:
            return None
        tiled = [d for d in self.cursor.parallel if self.cursor.pieces[d].count > 1]
        tiled.append(self.tile.vector_dim)
        moves = [any(a.strides[d] for d in tiled) for a in self.nest.inputs]
        still = moves.count(False) == 1
        return self.nest.inputs[moves.index(True)] if still else None

    def _visited(self, points: Sequence[Point]) -> list[int]:
        """Return the order in which a step of the reductions visits points.

        The loop with the fewest points is innermost: its operands stay in registers
        while one at a time of the others' is there, the fewest in all.
        """
        counts = [self.cursor.pieces[d].count for d in self.cursor.parallel]
        loops = sorted(range(len(counts)), key=lambda k: -counts[k])
        return sorted(range(len(points)), key=lambda p: [points[p][k] for k in loops])

    def _emit_point(
        self, position: dict[int, int], state: State, fetcher: Fetcher
    ) -> State:
        lanes = self.cursor.lanes(self.tile.order)
        inputs = [
            fetcher.fetch(number, position, lanes) if access.used else None
            for number, access in enumerate(self.nest.inputs)
        ]
        short = self.across and lanes < self.tile.lanes
        state = list(state)
        totals = self._slots(state, -1)
        if self.across and not short:
            slots = self._slots(state, position[self.tile.vector_dim])
        else:
            slots = totals
        old = [state[slot] for slot in slots]
        if short and lanes > 1:
            old = [
                splat(with_lanes(buffer.element, lanes), combiner.neutral())
                for buffer, combiner in zip(
                    self.outputs, self.work.combiners, strict=True
                )
            ]
        new = self.work.body([*inputs, *old], self.cursor.loop_index(position))
        if short and lanes > 1:
            new = [
                combiner(state[slot], fold_lanes(value, combiner))
                for slot, value, combiner in zip(
                    totals, new, self.work.combiners, strict=True
                )
            ]
        for slot, value in zip(slots, new, strict=True):
            state[slot] = value
        return state

    def _slots(self, state: State, number: int) -> list[int]:
        """Return where one accumulator of each output is; -1 means its total."""
        width = len(state) // len(self.outputs)
        return [o * width + number % width for o in range(len(self.outputs))]
