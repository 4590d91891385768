"""Owns matrix products whose vectors run along columns; knows nothing of MLIR.

The columns of a block are vectors of one operand, the panel; its rows are single
elements of the other operand, equal in all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from magweld.passes.cpu.cache_sets import (
    MEETING_BITS,
    MEETING_IN_PLACE,
    MEETING_PACKED,
    MOST_COPIED,
    WORD_BITS,
    meeting_elements,
    panel_collides,
)
from magweld.passes.cpu.dot_products import rest_dots
from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.cpu.pair_nests import can_be_pairs, has_pairs, paired_nest, points
from magweld.passes.cpu.product_costs import (
    OUTPUT_CYCLES,
    Candidate,
    best_block,
    block_cycles,
    longest_of,
    own_loops,
    points_of,
    power_below,
)
from magweld.passes.cpu.register_tile import NONE, RegisterTile, VectorUnit
from magweld.passes.tiling.first_cache import LINE_BYTES
from magweld.passes.tiling.strips import PIPE_BITS
from magweld.passes.tiling.vectors import TURN_CYCLES, copy_cycles

# Distance between rows of a panel, in elements, from which walking down the rows
# costs more address translations than copying the panel, and what it costs then.
FAR_ROWS, FAR_CYCLES = 1024, 0.6
# Rows whose addresses a core has translated at one time (72 pages on Zen 4, 64 on
# Zen 3): 64 rows of 56 x 56 pixels take a tenth less in their place, 256 a quarter more
# with AVX2. For elements of words, as are prices of uneven copies.
NEAR_ROWS = 64
# Cycles to bring an element of a panel back into the first cache for each row of blocks
# where the panel's rows meet in a few sets (2.6 for a line; Zen 3).
COLLISION_CYCLES = 0.15
# Cycles to read and write an element of a vector of results that are no neighbours: of
# 96 channels over 20 x 20 pixels the last four columns take longer as vectors of rows.
APART_CYCLES = 10.0


def panel_candidates(
    nest: LoopNest, unit: VectorUnit, lanes: int
) -> Iterator[Candidate]:
    """Yield tiles whose vectors run along a loop of the output."""
    for columns, parallel in enumerate(nest.parallel):
        for number, panel in enumerate(nest.inputs):
            other = nest.inputs[1 - number]
            moves = panel.strides[columns] != 0 and other.strides[columns] == 0
            if not parallel or not moves or nest.extents[columns] < 2:
                continue
            width = min(lanes, power_below(nest.extents[columns]))
            product = _PanelProduct(nest, unit, columns, number, width, lanes)
            if panel.strides[columns] == 1:
                yield product.in_place()
            yield product.packed()
            for depth in nest.reductions if unit.pairs else ():
                if can_be_pairs(nest, number, depth):
                    yield product.paired(depth)


@dataclass(frozen=True)
class _PanelProduct:
    """A product with vectors along one loop.

    Attributes:
        nest: The product.
        unit: The registers.
        columns: The loop.
        number: Which operand is the panel.
        lanes: Elements of a vector of columns.
        widest: Elements of the widest vector.
    """

    nest: LoopNest
    unit: VectorUnit
    columns: int
    number: int
    lanes: int
    widest: int

    @property
    def panel(self) -> Access:
        """The operand that is read as vectors."""
        return self.nest.inputs[self.number]

    @property
    def other(self) -> Access:
        """The operand that is read element by element."""
        return self.nest.inputs[1 - self.number]

    @cached_property
    def rows(self) -> list[int]:
        """The loops that move the other operand alone; the longest one is last."""
        loops = own_loops(self.nest, 1 - self.number)
        row = longest_of(self.nest, loops)
        return [d for d in loops if d != row] + ([row] if loops else [])

    @property
    def row(self) -> int:
        """The loop whose iterations are the rows of a block, or NONE."""
        return self.rows[-1] if self.rows else NONE

    @cached_property
    def outer(self) -> list[int]:
        """The other parallel loops."""
        inner = {self.columns, *self.rows}
        return [d for d, p in enumerate(self.nest.parallel) if p and d not in inner]

    @cached_property
    def extents(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        rows = self.nest.extents[self.row] if self.rows else 1
        return rows, self.nest.extents[self.columns]

    @cached_property
    def block(self) -> tuple[int, int]:
        """Rows and vectors of columns of a block."""
        return best_block(*self.extents, self.lanes, self.unit)

    @property
    def elements(self) -> int:
        """How often an element of a panel is copied, or read for the first time."""
        loops = (*self.outer, *self.nest.reductions, self.columns)
        return points_of(self.nest, loops)

    def in_place(self) -> Candidate:
        """Return the tile that reads the panel where it is."""
        steps, beside = self.panel.strides, 0.0
        far = [d for d in self.nest.reductions if abs(steps[d]) >= FAR_ROWS]
        # Narrower elements are widened wherever they are read, once in a panel.
        near = NEAR_ROWS if self.panel.bits == WORD_BITS else 1
        rows, tile = self._with_rows(MEETING_IN_PLACE)
        if points_of(self.nest, far) > near:
            beside = self.elements * FAR_CYCLES
        elif panel_collides(self.nest, self.panel, self.block[1] * self.lanes):
            strips = ceil(self.extents[0] / self.block[0])
            beside = self.elements * COLLISION_CYCLES * strips
        return self._with_rest(beside + rows, tile, [self._rest_rows()])

    def packed(self) -> Candidate:
        """Return the tile that copies the panel into contiguous memory."""
        turned = self.panel.strides[self.columns] != 1
        copied = TURN_CYCLES if turned else copy_cycles(self.unit.bits, even=self._even)
        copied *= self.elements
        rows, tile = self._with_rows(MEETING_PACKED)
        tile = replace(tile, packed_input=self.number)
        loops = (self.row, self.columns)
        dots = rest_dots(self.nest, self.unit, loops, self.lanes, self.other)
        return self._with_rest(copied + rows, tile, [dots, self._rest_rows()])

    def _with_rows(self, meeting: int) -> tuple[float, RegisterTile]:
        """Return the cycles of rows that evict each other, and the tile for them.

        They are copied where that takes less: once, and not for each strip of columns.

        Args:
            meeting: How many rows of a block may not meet in one set.
        """
        elements = meeting_elements(
            self.nest, self.other, self.row, self.block[0], meeting
        )
        if self.unit.bits > MEETING_BITS:
            elements = 0
        strips = ceil(self.extents[1] / (self.block[1] * self.lanes))
        evicted = elements * strips * COLLISION_CYCLES
        copied = elements * copy_cycles(self.unit.bits)
        if copied >= evicted or elements > MOST_COPIED:
            return evicted, self._tile()
        return copied, replace(self._tile(), copied_input=1 - self.number)

    def _with_rest(
        self, beside: float, tile: RegisterTile, rests: Sequence[Candidate | None]
    ) -> Candidate:
        """Return a tile, with one of those for the columns that fill no vector.

        Args:
            beside: Cycles beside those of vectors of columns.
            tile: Of vectors of columns.
            rests: For the columns that fill none, each without an order of the loops.
        """
        whole = Candidate(self._cycles(self.extents[1]) + beside, tile)
        vectors = self._cycles(self.extents[1] // self.lanes * self.lanes)
        parted = (
            Candidate(
                vectors + self._times * rest.cycles + beside,
                replace(tile, rest=replace(rest.tile, order=tile.order)),
            )
            for rest in rests
            if rest is not None
        )
        return min((whole, *parted), key=lambda candidate: candidate.cycles)

    def _rest_rows(self) -> Candidate | None:
        """Return vectors of rows for the columns that fill none, None without them.

        Rows are contiguous then, and few columns are few such vectors: 16 x 49 results
        are 48 vectors of columns and one of rows, where the last column took 16.
        """
        rows, columns = self.extents
        rest = columns % self.lanes
        if not rest or not self.rows or self.other.strides[self.row] != 1:
            return None
        lanes = min(self.widest, power_below(rows))
        block = best_block(rest, rows, lanes, self.unit)
        depth = points_of(self.nest, self.nest.reductions)
        apart = self._lanes_apart(self.row, lanes) > 1
        access = lanes * APART_CYCLES if apart else OUTPUT_CYCLES
        cycles = depth * block_cycles(rest, rows, lanes, block, self.unit)
        cycles += rest * ceil(rows / lanes) * access
        # Narrow vectors take one of two pipes.
        share = PIPE_BITS / max(self.unit.bits, PIPE_BITS)
        if cycles >= depth * rows * rest.bit_count() * share:
            return None
        unroll = dict.fromkeys(range(len(self.nest.extents)), 1)
        unroll[self.columns], unroll[self.row] = block
        tile = RegisterTile((), (), tuple(unroll.values()), self.row, lanes)
        return Candidate(cycles, tile)

    def paired(self, depth: int) -> Candidate:
        """Return the tile that multiplies pairs along a loop of the reduction."""
        product = replace(self, nest=paired_nest(self.nest, depth))
        copied = product.elements
        if not has_pairs(self.nest, self.other, depth):
            copied += points(product.nest, product.other)
        cycles = product._cycles(self.extents[1]) + TURN_CYCLES * copied
        tile = replace(product._tile(), packed_input=self.number, pairs=depth)
        return Candidate(cycles, tile)

    @property
    def _even(self) -> bool:
        """Whether all rows of the panel begin at the same place of a line."""
        steps = (self.panel.strides[d] * self.panel.bits for d in self.nest.reductions)
        narrow = self.panel.bits < WORD_BITS
        return narrow or all(step % (LINE_BYTES * 8) == 0 for step in steps)

    @property
    def _times(self) -> int:
        """How often all rows and columns of the blocks are walked."""
        return points_of(self.nest, (*self.outer, *self.rows[:-1]))

    def _cycles(self, columns: int) -> float:
        """Return the cycles of some columns, with what is read and written of them."""
        rows, _ = self.extents
        depth = points_of(self.nest, self.nest.reductions)
        products = depth * block_cycles(
            rows, columns, self.lanes, self.block, self.unit
        )
        access = OUTPUT_CYCLES * self._lanes_apart(self.columns, self.lanes)
        return self._times * (products + rows * ceil(columns / self.lanes) * access)

    def _lanes_apart(self, loop: int, lanes: int) -> int:
        """Return how many parts of a vector of the output are accessed one by one."""
        return 1 if self.nest.outputs[0].strides[loop] == 1 else lanes

    def _tile(self) -> RegisterTile:
        unroll = dict.fromkeys(range(len(self.nest.extents)), 1)
        unroll[self.columns] = self.block[1]
        if self.rows:
            unroll[self.row] = self.block[0]
        return RegisterTile(
            dims=(),
            # A panel of columns stays in the cache while all rows pass by.
            order=(*self.outer, self.columns, *self.rows, *self.nest.reductions),
            unroll=tuple(unroll.values()),
            vector_dim=self.columns,
            lanes=self.lanes,
        )
