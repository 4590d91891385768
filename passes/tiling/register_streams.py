"""Owns streams whose tiles lie in registers of a GPU: which may, what they take.

Each of four subgroups, or of eight, has some rows of a tile, all of their columns, and
the sums of these. Results of matrix instructions are operands of the next ones as they
are, so that nothing but the blocks of what products read goes through shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.matrix_units import (
    instruction_for,
)
from magweld.passes.tiling.needs import OperatorTile
from magweld.passes.tiling.propagation import Refusal, Tiles
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.passes.tiling.stream import Blocks
from magweld.passes.tiling.stream_factors import (
    FRAGMENT,
    has_rows,
    is_of_matrices,
    moves,
    right_factor,
    sides,
    stream_instruction,
    streamed_reads,
)
from magweld.targets.device import Device, Level

# Subgroups that share the rows of a tile: four, or twice as many where these have no
# registers for twice the rows. What products read in blocks is read once for all.
SUBGROUPS = 4
MOST_SUBGROUPS = 8
# Sizes of the blocks, and blocks that a stream has at least.
BLOCKS = (32, 64, 128)
_LEAST_BLOCKS = 2
# Registers of a thread for elements of tiles: the rest is for addresses, and for what
# an operation makes.
_MOST_REGISTERS = 208
# Blocks of the launch that a multiprocessor is to have together, and most slots.
_BESIDE = 2
_MOST_STAGES = 3


@dataclass(frozen=True)
class RegisterStream:
    """How a streamed tile lies in registers.

    Attributes:
        rows: Rows that a subgroup has.
        subgroups: How many there are.
        rings: Bytes of a block of everything that products read in blocks, by the
            node and the number of the read.
        loaded: Bytes that subgroups load from shared memory for a tile.
        matrix_operations: Of the products of a tile.
    """

    rows: int
    subgroups: int
    rings: tuple[tuple[tuple[int, int], int], ...]
    loaded: int
    matrix_operations: int

    @property
    def block_bytes(self) -> int:
        """Bytes of a slot of every ring."""
        return sum(size for _, size in self.rings)

    def stages(self, level: Level, *, copies_ahead: bool) -> int:
        """Return how many slots rings have."""
        if not copies_ahead:
            return 1
        room = level.capacity // _BESIDE // max(1, self.block_bytes)
        return max(2, min(_MOST_STAGES, room))

    def footprint(self, level: Level, *, copies_ahead: bool) -> int:
        """Return the bytes of shared memory of a tile."""
        return self.block_bytes * self.stages(level, copies_ahead=copies_ahead)


def register_stream(
    group: Group, tiles: Tiles, device: Device
) -> RegisterStream | Refusal:
    """Return how the tiles of a stream lie in registers, or why they do not."""
    blocks = tiles.blocks
    if blocks is None:
        return Refusal("no-stream", "nothing is streamed")
    return _Reading(group, tiles, blocks, device).run()


def stream_tiles(root: OperatorModel) -> Iterator[tuple[int, ...]]:
    """Yield the tiles of a result that subgroups may have in registers: whole rows.

    Where their number does not divide an extent, the last two tiles overlap.
    """
    if not root.whole_tile:
        return  # it makes a single element
    *others, columns = root.whole_tile
    for rows in (2 * SUBGROUPS * FRAGMENT, SUBGROUPS * FRAGMENT):
        for loop, extent in enumerate(others):
            if extent >= rows:
                sizes = [1] * len(others)
                sizes[loop] = rows
                yield (*sizes, columns)


def stream_slots(group: Group, tiles: Tiles, device: Device) -> float:
    """Return the operations that the arithmetic of a tile takes the time of.

    Sums of products are scaled for each block, which larger blocks have fewer of.
    """
    slots = 0.0
    blocks = tiles.blocks
    for node, part in enumerate(tiles.parts):
        is_scaled = blocks is not None and blocks.stream.accumulates(group, node)
        if is_scaled and blocks is not None:
            slots += part.results * blocks.count
        instruction = instruction_for(part.model, device)
        if instruction is None:
            slots += part.points * part.model.flops
        else:
            rate = stream_instruction(part, device, instruction).gflops
            slots += 2 * part.points * device.peak_gflops / rate
    return slots


@dataclass(frozen=True)
class _Reading:
    """Reads a streamed tile, operator by operator."""

    group: Group
    tiles: Tiles
    blocks: Blocks
    device: Device

    def run(self) -> RegisterStream | Refusal:
        whole = self.blocks.stream.extent // self.blocks.size
        if whole < _LEAST_BLOCKS:
            return Refusal("no-stream", f"{whole} whole blocks")
        found = next(self._violations(), None)
        if found is not None:
            return Refusal("no-stream", found)
        products = self._products()
        rows = {sides(part)[0] for _, part in products}
        (lines,) = rows
        subgroups = self._subgroups(lines, products)
        rings = tuple(((n, r), size) for n, r, size in streamed_reads(self.tiles.parts))
        loaded = sum(
            [
                self._loaded(part, size, subgroups)
                for (_, size), (_, part) in zip(rings, products, strict=True)
            ]
        )
        operations = sum(2 * part.points for _, part in products)
        rows_of_one = lines // subgroups
        return RegisterStream(rows_of_one, subgroups, rings, loaded, operations)

    def _violations(self) -> Iterator[str]:
        stream = self.blocks.stream
        products = self._products()
        sums = [node for node, _ in products if stream.accumulates(self.group, node)]
        if not sums:
            yield "no product is summed over the stream"
        if any(stream.loops[node] is None for node, _ in products):
            yield "a product is no part of it"
        if len(self.group.stored) > 1:
            yield "several results are stored"
        for node, part in enumerate(self.tiles.parts):
            yield from self._operator_violations(node, part)
        rows = {sides(part)[0] for _, part in products if is_of_matrices(part)}
        if len(rows) != 1 or not rows <= {
            SUBGROUPS * FRAGMENT,
            SUBGROUPS * FRAGMENT * 2,
        }:
            yield f"{sorted(rows)} rows of products, which no subgroups share"
            return
        (lines,) = rows
        registers = self._registers(products, self._subgroups(lines, products))
        if registers > _MOST_REGISTERS:
            yield f"{registers} registers, {_MOST_REGISTERS} there"

    def _operator_violations(self, node: int, part: OperatorTile) -> Iterator[str]:
        model = part.model
        name, kind = model.name, model.kind
        if len(model.writes) != 1 or any(r.padded or r.gathered for r in model.reads):
            yield f"{name} reads or writes something else than tiles"
        if any(expr is None for read in model.reads for expr in read.index):
            yield f"{name} reads all of something"
        elif kind is OperatorKind.CONTRACTION:
            yield from self._product_violations(node, part)
        elif kind is OperatorKind.REDUCTION:
            long = [n for n in model.reduction if part.box[n].size > 1]
            if long != [self.blocks.stream.loops[node]]:
                yield f"{name} reduces something else than the stream"
        elif kind is not OperatorKind.ELEMENTWISE:
            yield f"{name} is no product, reduction or element by element"

    def _product_violations(self, node: int, part: OperatorTile) -> Iterator[str]:
        model = part.model
        if instruction_for(model, self.device) is None:
            yield f"no matrix instructions for {model.name}"
            return
        if not is_of_matrices(part):
            yield f"{model.name} is no product of two matrices"
            return
        _, columns, steps = sides(part)
        stream = self.blocks.stream
        fixed = steps if stream.loops[node] not in model.reduction else columns
        if fixed % FRAGMENT:
            yield f"{fixed} columns or steps of {model.name} are no whole fragments"
        right = right_factor(part)
        if not part.outside[right] or not moves(part, right):
            yield f"{model.name} reads no blocks of a tensor"
        elif not has_rows(part, right):
            yield f"what {model.name} reads has no rows of 16 bytes"
        left = 1 - right
        if part.outside[left] and moves(part, left):
            yield f"both factors of {model.name} are streamed"

    def _products(self) -> list[tuple[int, OperatorTile]]:
        return [
            (node, part)
            for node, part in enumerate(self.tiles.parts)
            if part.model.kind is OperatorKind.CONTRACTION
        ]

    def _subgroups(self, lines: int, products: list[tuple[int, OperatorTile]]) -> int:
        """How many subgroups share so many rows: four, if they have room for them."""
        few = self._registers(products, SUBGROUPS) <= _MOST_REGISTERS
        return (
            SUBGROUPS if few or lines % (MOST_SUBGROUPS * FRAGMENT) else MOST_SUBGROUPS
        )

    def _loaded(self, part: OperatorTile, size: int, subgroups: int) -> int:
        """Bytes of blocks that subgroups load for a product: warpgroups load together.

        They do so for each fragment of rows, a subgroup alone once for all of them.
        """
        plain = instruction_for(part.model, self.device)
        assert plain is not None, "products have one"
        times = subgroups
        if stream_instruction(part, self.device, plain) is not plain:
            times = sides(part)[0] // (SUBGROUPS * FRAGMENT)
        return times * size * part.times

    def _registers(
        self, products: list[tuple[int, OperatorTile]], subgroups: int
    ) -> int:
        """Registers of a thread for sums, and for what products read of rows."""
        threads = subgroups * self.device.warp
        total = 0
        for _, part in products:
            rows, columns, steps = sides(part)
            total += rows * columns
            if part.outside[1 - right_factor(part)]:
                total += rows * steps // 2
            elif self._is_in_flight(part):
                # Its left factor, while what that is made of is there for a later one.
                total += rows * steps // 2
        return total // threads

    def _is_in_flight(self, part: OperatorTile) -> bool:
        """Whether a product is under way while scores of the next block are there."""
        plain = instruction_for(part.model, self.device)
        if plain is None:
            return False
        return stream_instruction(part, self.device, plain) is not plain
