"""Owns the emission of one loop nest as loops around a register tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from magweld.passes.cpu.emit_body import Body, emit_copied
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand, scratch
from magweld.passes.cpu.emit_cursor import Cursor
from magweld.passes.cpu.emit_index import Index, emit_loop
from magweld.passes.cpu.emit_next_block import has_room
from magweld.passes.cpu.emit_pairs import emit_single, pair_sources, pair_type
from magweld.passes.cpu.emit_prefetch import (
    NextPanel,
    emit_next_panel,
    next_dots,
    next_rows,
)
from magweld.passes.cpu.emit_tile import TileEmitter, Work
from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.cpu.register_policy import choose_register_tile
from magweld.passes.cpu.register_tile import NONE, RegisterTile, VectorUnit


class NestEmitter:
    """Emits one loop nest at the current insertion point.

    The parallel loops surround the register tile. What fills no vector may have a
    register tile of its own: the nest is emitted again then, for these columns.
    """

    def __init__(
        self,
        nest: LoopNest,
        tile: RegisterTile,
        operands: Sequence[Operand],
        work: Work,
        unit: VectorUnit,
    ) -> None:
        self.nest = nest
        self.tile = tile
        self.operands = list(operands)
        self.work = work
        self.unit = unit
        self.cursor = Cursor(nest, tile)
        self.parallel = self.cursor.parallel
        self.reductions = self.cursor.reductions
        self.next_panel: NextPanel | None = None

    def emit(self, part: Mapping[int, tuple[Index, int]] | None = None) -> None:
        """Emit the nest.

        Args:
            part: For each parallel loop of which only a part is wanted: the first
                iteration and their number.
        """
        self._emit_parallel(0, part or {})

    def _emit_parallel(self, level: int, part: Mapping[int, tuple[Index, int]]) -> None:
        if level == len(self.parallel):
            read = (self.nest, self.cursor, self.operands)
            # What makes the last columns reads rows that the others have read.
            dots = None if part else next_dots(*read)
            roomy = has_room(self.nest, self.tile, self.unit.bits)
            rows = next_rows(*read) if roomy else None
            found = (self.next_panel, rows, dots, self.work.ahead)
            prefetches = [prefetch for prefetch in found if prefetch is not None]
            TileEmitter(self.cursor, self.operands, self.work, prefetches).emit()
            return
        dim = self.parallel[level]
        first, extent = part.get(dim, (Index(), self.nest.extents[dim]))
        for piece in self.cursor.split(dim, extent):

            def step(index: Index) -> None:
                self.cursor.positions[dim] = first.plus(index)
                unpacked = list(self.operands)
                if self.tile.packed_input != NONE and dim == self.tile.vector_dim:
                    self._pack(self.parallel[: level + 1])
                if self.cursor.is_rest(dim):
                    self._emit_rest(self.parallel[: level + 1])
                else:
                    self._emit_parallel(level + 1, part)
                self.operands = unpacked
                if dim == self.tile.vector_dim:
                    self.next_panel = None

            self.cursor.pieces[dim] = piece
            emit_loop(piece, step)

    def _emit_rest(self, opened: Sequence[int]) -> None:
        """Emit the last columns with a register tile of their own."""
        rest = self.tile.rest
        assert rest is not None, "the cursor has found one"
        part = {
            dim: (self.cursor.positions[dim], self.cursor.pieces[dim].step)
            for dim in opened
        }
        work = replace(self.work, ahead=None)
        NestEmitter(self.nest, rest, self.operands, work, self.unit).emit(part)

    def _pack(self, opened: Sequence[int]) -> None:
        """Copy the panel of the current columns into contiguous scratch memory.

        It is contiguous along the vectors that it is read as.
        """
        number, columns = self.tile.packed_input, self.tile.vector_dim
        source = self.operands[number]
        assert isinstance(source, FlatBuffer), "a packed operand is a buffer"
        sizes = {d: self.nest.extents[d] for d in self.reductions}
        sizes[columns] = self.cursor.pieces[columns].step
        across = self.cursor.is_rest(columns)
        loops = [columns, *self.reductions] if across else [*self.reductions, columns]
        extents = [sizes[d] for d in loops]
        paired = self.tile.pairs != NONE
        panel = scratch(prod(extents), pair_type() if paired else source.element)
        strides = [0] * len(self.nest.extents)
        for k, loop in enumerate(loops):
            strides[loop] = prod(extents[k + 1 :])
        corner = self.cursor.index(source, dict.fromkeys(opened, 0))
        start = Index().emit()
        along = tuple(source.strides[d] for d in loops)
        read = replace(source, strides=along, origin=corner)
        target = FlatBuffer(panel, start, tuple(strides[d] for d in loops), Index())
        if paired:
            depth = loops.index(self.tile.pairs)
            odd = self.nest.odd_pairs
            emit_paired_copy(read, target, tuple(extents), depth, odd, self.unit)
            (read, *_), _ = pair_sources(read, depth)
        else:
            emit_copy([read], target, tuple(extents), emit_copied, self.unit)
        if len(self.reductions) == 1 and not across:
            read = replace(read, strides=source.strides)
            self.next_panel = emit_next_panel(read, corner, self.cursor)
        origin = self.cursor.positions[columns].times(-strides[columns])
        self.operands[number] = FlatBuffer(panel, start, tuple(strides), origin)


def emit_paired_copy(
    source: FlatBuffer,
    target: FlatBuffer,
    extents: tuple[int, ...],
    depth: int,
    odd: bool,
    unit: VectorUnit,
) -> None:
    """Emit a copy of single elements that makes pairs along a loop.

    Args:
        source: What is read, with the strides of pairs.
        target: Pairs.
        extents: The loops.
        depth: The loop that steps over pairs.
        odd: Whether the last pair has one element; zero is the other one then.
        unit: The registers.
    """
    whole = extents[depth] - odd
    if whole:
        sources, body = pair_sources(source, depth)
        emit_copy(sources, target, _with(extents, depth, whole), body, unit)
    if odd:
        last = (
            replace(b, origin=b.origin.shifted(whole * b.strides[depth]))
            for b in (source, target)
        )
        single, pair = last
        emit_copy([single], pair, _with(extents, depth, 1), emit_single, unit)


def _with(extents: tuple[int, ...], loop: int, extent: int) -> tuple[int, ...]:
    return (*extents[:loop], extent, *extents[loop + 1 :])


def emit_copy(
    sources: Sequence[FlatBuffer],
    target: FlatBuffer,
    extents: tuple[int, ...],
    body: Body,
    unit: VectorUnit,
) -> None:
    """Emit a copy between buffers, in vectors, turning blocks where that is needed.

    Args:
        sources: What is read at each point.
        target: What is written.
        extents: The loops.
        body: Makes one element of those that are read.
        unit: The registers.
    """
    buffers = [*sources, target]
    *inputs, output = (
        Access(buffer.strides, 0, buffer.element.width, buffer is not target)
        for buffer in buffers
    )
    nest = LoopNest(
        extents=extents,
        parallel=(True,) * len(extents),
        inputs=tuple(inputs),
        outputs=(output,),
        combiners=("",),
        scalar_reason="",
        uses_index=False,
        uses_math=False,
        product=False,
    )
    tile = choose_register_tile(nest, unit)
    nest = nest.collapse(tile.dims)
    operands = [
        replace(buffer, strides=access.strides)
        for buffer, access in zip(buffers, nest.accesses, strict=True)
    ]
    NestEmitter(nest, tile, operands, Work(body), unit).emit()
