"""Owns the emission of one loop nest as loops around a register tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from magweld.bindings import ir
from magweld.passes.cpu.emit_body import Combiner, IndexOf
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand, scratch
from magweld.passes.cpu.emit_cursor import Cursor, Fetcher, Point
from magweld.passes.cpu.emit_finish import Finish
from magweld.passes.cpu.emit_index import Index, emit_carrying_loop, emit_loop
from magweld.passes.cpu.emit_prefetch import NextPanel, emit_next_panel
from magweld.passes.cpu.emit_vectors import (
    broadcast,
    fold_lanes,
    fold_values,
    splat,
    with_lanes,
)
from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.cpu.register_policy import choose_register_tile
from magweld.passes.cpu.register_tile import NONE, RegisterTile, VectorUnit

Body = Callable[[Sequence[ir.Value | None], IndexOf], list[ir.Value]]
State = list[ir.Value | None]


class NestEmitter:
    """Emits one loop nest at the current insertion point.

    The parallel loops surround the register tile; its accumulators are carried by
    the reduction loops as SSA values and so stay in registers. The state of a point
    of the tile is, for each output, one partial vector for each unrolled vector of
    a vectorised reduction, then the total. A total begins with `first`, or with what
    the output holds; `finish` takes it before it is stored, or instead.
    """

    def __init__(
        self,
        nest: LoopNest,
        tile: RegisterTile,
        operands: Sequence[Operand],
        body: Body,
        unit: VectorUnit,
        combiners: Sequence[Combiner] = (),
        first: ir.Value | None = None,
        finish: Finish | None = None,
    ) -> None:
        self.nest = nest
        self.tile = tile
        self.operands = list(operands)
        self.body = body
        self.unit = unit
        self.combiners = combiners
        self.first = first
        self.finish = finish
        self.cursor = Cursor(nest, tile)
        self.parallel = [d for d in tile.order if nest.parallel[d]]
        self.reductions = [d for d in tile.order if not nest.parallel[d]]
        self.across = tile.vector_dim in self.reductions
        self.next_panel: NextPanel | None = None

    @property
    def outputs(self) -> list[FlatBuffer]:
        """Buffers of the outputs."""
        buffers = self.operands[len(self.nest.inputs) :]
        return [b for b in buffers if isinstance(b, FlatBuffer)]

    def emit(self, outer: Sequence[tuple[Index, int]] = ()) -> None:
        """Emit the nest.

        Args:
            outer: For each leading loop of which somebody else walks the strips: the
                first iteration and the number of iterations of a strip.
        """
        self._emit_parallel(0, outer)

    def _emit_parallel(self, level: int, outer: Sequence[tuple[Index, int]]) -> None:
        if level == len(self.parallel):
            self._emit_tile()
            return
        dim = self.parallel[level]
        first, extent = Index(), self.nest.extents[dim]
        if dim < len(outer):
            first, extent = outer[dim]
        for piece in self.cursor.split(dim, extent):

            def step(index: Index) -> None:
                self.cursor.positions[dim] = first.plus(index)
                unpacked = list(self.operands)
                if self.tile.packed_input != NONE and dim == self.tile.vector_dim:
                    self._pack(self.parallel[: level + 1])
                self._emit_parallel(level + 1, outer)
                self.operands = unpacked
                if dim == self.tile.vector_dim:
                    self.next_panel = None

            self.cursor.pieces[dim] = piece
            emit_loop(piece, step)

    def _pack(self, opened: Sequence[int]) -> None:
        """Copy the panel of the current columns into contiguous scratch memory."""
        number, columns = self.tile.packed_input, self.tile.vector_dim
        source = self.operands[number]
        assert isinstance(source, FlatBuffer), "a packed operand is a buffer"
        loops = [*self.reductions, columns]
        extents = [self.nest.extents[d] for d in self.reductions]
        extents.append(self.cursor.pieces[columns].step)
        panel = scratch(prod(extents), source.element)
        strides = [0] * len(self.nest.extents)
        for k, loop in enumerate(loops):
            strides[loop] = prod(extents[k + 1 :])
        corner = self.cursor.index(source, dict.fromkeys(opened, 0))
        start = Index().emit()
        emit_copy(
            FlatBuffer(
                source.view,
                source.start,
                tuple(source.strides[d] for d in loops),
                corner,
            ),
            FlatBuffer(panel, start, tuple(strides[d] for d in loops), Index()),
            tuple(extents),
            self.nest.inputs[number].bits,
            self.unit,
        )
        if len(self.reductions) == 1:
            self.next_panel = emit_next_panel(source, corner, self.cursor)
        origin = self.cursor.positions[columns].times(-1)
        self.operands[number] = FlatBuffer(panel, start, tuple(strides), origin)

    # ---- the register tile ----------------------------------------------------------

    def _emit_tile(self) -> None:
        points = list(self.cursor.points(self.parallel))
        state: State = []
        for point in points:
            state += self._initial(point)
        state = self._emit_reductions(0, points, state)
        width = len(state) // len(points)
        if self.finish is not None:
            self.finish.begin(self.cursor, self.parallel)
        for number, point in enumerate(points):
            self._store(point, state[number * width : (number + 1) * width])

    def _initial(self, point: Point) -> State:
        state: State = []
        lanes = self.cursor.lanes(self.parallel)
        position = dict(zip(self.parallel, point, strict=True))
        for number, buffer in enumerate(self.outputs):
            if self.across:
                kind = with_lanes(buffer.element, self.tile.lanes)
                partial = splat(kind, self.combiners[number].neutral())
                state += [partial] * self.tile.unroll[self.tile.vector_dim]
            if self.first is not None:
                state.append(broadcast(self.first, lanes))
            elif self.nest.outputs[number].used or self.reductions:
                index = self.cursor.index(buffer, position)
                stride = self.cursor.vector_stride(buffer)
                state.append(buffer.load(index, lanes, stride))
            else:
                state.append(None)
        return state

    def _store(self, point: Point, state: State) -> None:
        position = dict(zip(self.parallel, point, strict=True))
        lanes = self.cursor.lanes(self.parallel)
        width = len(state) // len(self.outputs)
        totals = []
        for number in range(len(self.outputs)):
            *partials, total = state[number * width : (number + 1) * width]
            if partials:
                combiner = self.combiners[number]
                vector = fold_values(partials, combiner)
                total = combiner(total, fold_lanes(vector, combiner))
            if self.finish is not None:
                self.finish.emit(position, total, lanes)
            totals.append(total)
        if self.finish is None or self.finish.keeps:
            self._store_totals(totals, position, lanes)

    def _store_totals(
        self, totals: Sequence[ir.Value], position: dict[int, int], lanes: int
    ) -> None:
        """Store the results of a point; those that lie in turns together."""
        number = 0
        while number < len(totals):
            buffer, *others = self.outputs[number:]
            index = self.cursor.index(buffer, position)
            stride = self.cursor.vector_stride(buffer)
            together = stride == 2 and lanes > 1 and others
            if together and buffer.is_before(others[0]):
                pair = [
                    broadcast(total, lanes) for total in totals[number : number + 2]
                ]
                buffer.store_pairs(pair, index)
                number += 2
            else:
                buffer.store(totals[number], index, lanes, stride)
                number += 1

    # ---- reductions -----------------------------------------------------------------

    def _emit_reductions(
        self, level: int, points: Sequence[Point], state: State
    ) -> State:
        if level == len(self.reductions):
            return self._emit_points(points, state)
        dim, fetched = self.reductions[level], self._fetched(len(points))
        for piece in self.cursor.split(dim, self.nest.extents[dim]):

            def step(index: Index, values: State) -> State:
                self.cursor.positions[dim] = index
                if self.next_panel is not None:
                    self.next_panel.emit(fetched, index)
                return self._emit_reductions(level + 1, points, values)

            self.cursor.pieces[dim] = piece
            state = emit_carrying_loop(piece, state, step)
        return state

    def _fetched(self, products: int) -> list[Index]:
        """Emit where the prefetches of this register tile begin."""
        if self.next_panel is None or self.parallel[-1] == self.tile.vector_dim:
            return []
        return self.next_panel.begin(self.cursor, self.parallel[-1], products)

    def _emit_points(self, points: Sequence[Point], state: State) -> State:
        fetcher = Fetcher(self.cursor, self.operands, self.parallel)
        width = len(state) // len(points)
        state = list(state)
        order = self._visited(points)
        for inner in self.cursor.points(self.reductions):
            for number in order:
                position = dict(zip(self.parallel, points[number], strict=True))
                position.update(zip(self.reductions, inner, strict=True))
                block = slice(number * width, (number + 1) * width)
                state[block] = self._emit_point(position, state[block], fetcher)
        return state

    def _visited(self, points: Sequence[Point]) -> list[int]:
        """Return the order in which a step of the reductions visits points.

        The loop with the fewest points is innermost: its operands stay in registers
        while one at a time of the others' is there, the fewest in all.
        """
        counts = [self.cursor.pieces[d].count for d in self.parallel]
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
                for buffer, combiner in zip(self.outputs, self.combiners, strict=True)
            ]
        new = self.body([*inputs, *old], self.cursor.loop_index(position))
        if short and lanes > 1:
            new = [
                combiner(state[slot], fold_lanes(value, combiner))
                for slot, value, combiner in zip(
                    totals, new, self.combiners, strict=True
                )
            ]
        for slot, value in zip(slots, new, strict=True):
            state[slot] = value
        return state

    def _slots(self, state: State, number: int) -> list[int]:
        """Return where one accumulator of each output is; -1 means its total."""
        width = len(state) // len(self.outputs)
        return [o * width + number % width for o in range(len(self.outputs))]


def emit_copy(
    source: FlatBuffer,
    target: FlatBuffer,
    extents: tuple[int, ...],
    bits: int,
    unit: VectorUnit,
) -> None:
    """Emit a copy between buffers, in vectors, turning blocks where that is needed."""
    nest = LoopNest(
        extents=extents,
        parallel=(True,) * len(extents),
        inputs=(Access(source.strides, 0, bits, True),),
        outputs=(Access(target.strides, 0, bits, False),),
        combiners=("",),
        scalar_reason="",
        uses_index=False,
        uses_math=False,
        product=False,
    )
    tile = choose_register_tile(nest, unit)
    nest = nest.collapse(tile.dims)
    operands = [
        FlatBuffer(buffer.view, buffer.start, access.strides, buffer.origin)
        for buffer, access in zip((source, target), nest.accesses, strict=True)
    ]
    NestEmitter(nest, tile, operands, lambda values, _: [values[0]], unit).emit()
