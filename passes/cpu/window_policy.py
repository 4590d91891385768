"""Owns the choice of a register tile for a window over an image; no MLIR here.

Every point of the window is a step of the code, so that neighbours in the image, of a
block of rows and vectors of columns, share what they load. The elements of the weight
are equal in all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil, prod

from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.cpu.masked_lanes import can_be_masked, masked_width
from magweld.passes.cpu.product_costs import (
    OPERAND_SHARE,
    OUTPUT_CYCLES,
    Candidate,
    power_below,
)
from magweld.passes.cpu.register_tile import (
    NONE,
    RegisterTile,
    VectorUnit,
    split_extent,
)
from magweld.passes.tiling.strips import LOAD_CYCLES, PIPE_BITS, vectors_in_flight
from magweld.passes.tiling.vectors import MOST_POINTS

# Multiply-adds in one block of code.
MOST_PRODUCTS = 512
# Loads and rearrangements for one vector of an image, by the distance of its elements.
VECTOR_LOADS = {1: 1, 2: 3}


def window_candidates(
    nest: LoopNest, unit: VectorUnit, lanes: int
) -> Iterator[Candidate]:
    """Yield register tiles that write the window out, for windows of few points.

    Args:
        nest: A nest whose body is `output + input 0 * input 1`.
        unit: The registers.
        lanes: Elements of a vector.
    """
    points = prod(nest.extents[d] for d in nest.reductions)
    if points > MOST_POINTS:
        return
    for columns, number in product(range(len(nest.extents)), (0, 1)):
        image, weight = nest.inputs[number], nest.inputs[1 - number]
        moves = image.strides[columns] in VECTOR_LOADS and not weight.strides[columns]
        extent = nest.extents[columns]
        long = nest.parallel[columns] and extent > 1
        if not (long and moves and _overlaps(nest, image)):
            continue
        widths = [(min(lanes, power_below(extent)), False)]
        if extent % lanes and can_be_masked(nest, columns, unit):
            widths.append((masked_width(extent, lanes), True))
        others = [d for d, p in enumerate(nest.parallel) if p and d != columns]
        for rows, (width, masked) in product((NONE, *others), widths):
            loops = (rows, columns)
            yield _Window(nest, unit, loops, number, width, masked).cheapest()


def _overlaps(nest: LoopNest, image: Access) -> bool:
    """Whether neighbours among the results read some elements in common."""
    return any(
        image.strides[p] <= image.strides[d] * (nest.extents[d] - 1)
        and image.strides[d] < image.strides[p] * nest.extents[p]
        for d in nest.reductions
        for p, parallel in enumerate(nest.parallel)
        if parallel and image.strides[p] > 0
    )


@dataclass(frozen=True)
class _Window:
    """A window with vectors along one loop.

    Attributes:
        nest: The product.
        unit: The registers.
        loops: The rows, or NONE, and the columns, along which vectors run.
        number: Which input is the image.
        lanes: Elements of a vector.
        masked: Whether the last columns may be a vector that is not full.
    """

    nest: LoopNest
    unit: VectorUnit
    loops: tuple[int, int]
    number: int
    lanes: int
    masked: bool

    @property
    def image(self) -> Access:
        """What is read as vectors."""
        return self.nest.inputs[self.number]

    @property
    def weight(self) -> Access:
        """What is equal in all lanes."""
        return self.nest.inputs[1 - self.number]

    @cached_property
    def points(self) -> int:
        """How many points the window has."""
        return prod(self.nest.extents[d] for d in self.nest.reductions)

    @cached_property
    def extents(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        rows, columns = self.loops
        extents = self.nest.extents
        return extents[rows] if rows != NONE else 1, extents[columns]

    def cheapest(self) -> Candidate:
        """Return the block of rows and vectors of columns with the fewest cycles."""
        accumulators = self.unit.registers - self.unit.registers // OPERAND_SHARE
        most = max(1, min(accumulators, MOST_PRODUCTS // self.points))
        rows, columns = self.extents
        blocks = [
            (r, c)
            for c in range(1, min(most, ceil(columns / self.lanes)) + 1)
            for r in range(1, min(rows, most // c) + 1)
        ]
        lines = [self._lines(count) for count in range(most + 1)]
        cycles = {block: self._cycles(block, lines) for block in blocks}
        block = min(blocks, key=lambda block: cycles[block])
        tile = self._tile(block)
        outer = [d for d in tile.order if self.nest.parallel[d] and d not in self.loops]
        times = prod(self.nest.extents[d] for d in outer)
        return Candidate(cycles[block] * times, tile)

    def _cycles(self, block: tuple[int, int], lines: list[int]) -> float:
        """Return the cycles of all rows and columns in some blocks."""
        rows, columns = self.loops
        loads = VECTOR_LOADS[self.image.strides[columns]]
        own = rows != NONE and self.weight.strides[rows] != 0
        contiguous = self.nest.outputs[0].strides[columns] == 1
        stride = 1 if contiguous else self.lanes
        flight = vectors_in_flight(self.unit.bits)
        cycles = 0.0
        for r in split_extent(self.extents[0], block[0], 1):
            for c in split_extent(
                self.extents[1], block[1], self.lanes, masked=self.masked
            ):
                steps = ceil((r.stop - r.start) / r.step)
                steps *= ceil((c.stop - c.start) / c.step)
                slots = _slots(c.lanes, self.unit)
                # Half as wide ones take one of two pipes, and as long; loads are as
                # many.
                each = max(r.count * c.count * slots, flight)
                fetched = lines[r.count] * c.count * loads
                fetched += self.points * (r.count if own else 1)
                stored = r.count * c.count * OUTPUT_CYCLES * stride * slots
                total = each * self.points + LOAD_CYCLES * fetched + stored
                cycles += steps * total
        return cycles

    def _tile(self, block: tuple[int, int]) -> RegisterTile:
        rows, columns = self.loops
        nest = self.nest
        outer = [d for d, p in enumerate(nest.parallel) if p and d not in self.loops]
        unroll = [1 if p else nest.extents[d] for d, p in enumerate(nest.parallel)]
        unroll[columns] = block[1]
        inner = [columns]
        if rows != NONE:
            unroll[rows] = block[0]
            inner = [rows, columns]
        return RegisterTile(
            dims=(),
            order=(*outer, *inner, *nest.reductions),
            unroll=tuple(unroll),
            vector_dim=columns,
            lanes=self.lanes,
            masked=self.masked,
        )

    def _lines(self, count: int) -> int:
        """Return how many vectors of an image a column of a block reads, each once."""
        rows, _ = self.loops
        image, extents = self.image, self.nest.extents
        step = image.strides[rows] if rows != NONE else 0
        moves = [
            range(0, extents[d] * image.strides[d], image.strides[d])
            if image.strides[d]
            else range(1)
            for d in self.nest.reductions
        ]
        return len({i * step + sum(at) for i in range(count) for at in product(*moves)})


def _slots(lanes: int, unit: VectorUnit) -> float:
    """Return what an operation takes of the time of one on a whole register."""
    return max(lanes * 32, PIPE_BITS) / max(unit.bits, PIPE_BITS)
