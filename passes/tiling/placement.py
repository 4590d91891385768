"""Owns where the buffers of one tile lie in the level that holds its tiles.

Welder's MemFootprint (section 4.2): what a tile needs at its worst moment, by best fit
in the order in which the operators run. A cache holds all operands of a tile, of a long
product those of one block of its reduction. Explicit memory holds what is staged there:
the operands of contractions, a step of the reduction long, what is read across the rows
of a tile, and reuse tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from magweld.dialects.tile_graph.roles import Role
from magweld.passes.tiling.best_fit import BestFit, aligned_size
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.loop_nests import LoopNests
from magweld.passes.tiling.needs import OperatorTile
from magweld.passes.tiling.padded_products import padded_of
from magweld.passes.tiling.propagation import Tiles
from magweld.passes.tiling.regions import (
    ZERO,
    Access,
    Interval,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.tiling.steps import bordered_bytes, few_channels, one_block
from magweld.passes.tiling.stream import Blocks
from magweld.passes.tiling.stream_factors import streamed_reads
from magweld.passes.tiling.window_products import CHANNELS, window_product
from magweld.passes.tiling.winograd_buffers import WinogradBuffers, winograd_buffers
from magweld.passes.tiling.winograd_forms import FORMS, IN_TILES, ROWS
from magweld.targets.device import Level, LevelKind

# One buffer starts on a line of its own: 64 bytes is a cache line of the CPUs and a
# whole number of banks of the GPUs in devices.toml.
ALIGNMENT_BYTES = 64
# Whose operands are staged in explicit memory; those of others stream through
# registers, but for what is read across rows.
STAGED_KINDS = frozenset({OperatorKind.CONTRACTION, OperatorKind.CONVOLUTION})


@dataclass(frozen=True)
class Slot:
    """Where a buffer lies.

    Attributes:
        offset: Its first byte.
        size: Bytes that are used; what they are rounded up to is taken.
    """

    offset: int
    size: int


@dataclass
class Placement:
    """The buffers of one tile; what is in none of the tables has no place.

    Attributes:
        reads: Of what is read from outside, by the root of the loop nest, the node and
            the number of the read.
        windows: Of windows with a border around them, likewise.
        rows: Of copies of what is read across the rows of a tile, likewise.
        tiles: Of what is made, by node and number of the result.
        lasting: Whether windows keep their places from tile to tile, so that their
            borders are filled once.
        beside: Of what an operator has beside its tiles, by node and role.
        apart: Whether this lies in a memory further out, which has room for it.
        tops: Of maxima that are subtracted in a stream, by node.
        overwritten: For a node that is made in the place of another one's tile, this
            one.
        factors: Of what brings sums to another maximum: by node that makes the
            maximum, for a block, and by node that sums, behind the last block.
        size: Bytes that all of it takes.
    """

    reads: dict[tuple[int, int, int], Slot] = field(default_factory=dict)
    windows: dict[tuple[int, int, int], Slot] = field(default_factory=dict)
    rows: dict[tuple[int, int, int], Slot] = field(default_factory=dict)
    tiles: dict[tuple[int, int], Slot] = field(default_factory=dict)
    overwritten: dict[int, int] = field(default_factory=dict)
    lasting: bool = False
    beside: dict[tuple[int, Role], Slot] = field(default_factory=dict)
    apart: bool = False
    tops: dict[int, Slot] = field(default_factory=dict)
    factors: dict[int, Slot] = field(default_factory=dict)
    size: int = 0


def footprint_bytes(
    group: Group, tiles: Tiles, level: Level, step: int, stages: int = 1
) -> int:
    """Return the bytes of `level` that one tile needs at its worst moment."""
    return place_tile(group, tiles, level, step, stages).size


def staged_steps(group: Group, tiles: Tiles, step: int) -> int:
    """Return in how many steps explicit memory gets the operands of a contraction.

    The most of all contractions that read from outside; 1 without any.
    """
    return max((_steps_of(part, step) for part in tiles.parts), default=1)


def _steps_of(part: OperatorTile, step: int) -> int:
    if part.model.kind is not OperatorKind.CONTRACTION or not any(part.outside):
        return 1
    extents = [math.ceil(part.box[loop].size) for loop in part.model.reduction]
    *outer, inner = extents or [1]
    return math.prod(outer) * -(-inner // step)


def tile_bytes(group: Group, tiles: Tiles, level: Level, step: int) -> int:
    """Return the bytes that tiles need, without what streams past them.

    That is what operators have beside them, and borders that last.
    """
    return _placed(group, tiles, level, step, lasting=False, apart=True).size


def tile_bytes_between(group: Group, tiles: Tiles) -> tuple[int, float]:
    """Return what `tile_bytes` of a cache is no less and no more than.

    At least what an operator makes is there with one of the things that it reads. At
    most nothing ends before anything else begins; that is not known of a stream, which
    has more than its operators.
    """
    nests = nests_of(group, tiles.blocks)
    least, most = 0, 0
    for node, part in enumerate(tiles.parts):
        staged, longest, made = _taken(part)
        most += staged
        if not nests.is_fused(node):
            least, most = max(least, longest + made), most + made
    return least, math.inf if tiles.blocks is not None else most


def _taken(part: OperatorTile) -> tuple[int, int, int]:
    """Bytes of all that an operator reads in a cache, of the longest of it, of results.

    Found once.
    """
    known: tuple[int, int, int] | None = part.known.get("taken")
    if known is None:
        staged = [
            aligned_size(size, ALIGNMENT_BYTES) for *_, size in _staged(part, None)
        ]
        made = sum(
            aligned_size(part.results * write.element_bytes, ALIGNMENT_BYTES)
            for write in part.model.writes
        )
        known = part.known["taken"] = (sum(staged), max(staged, default=0), made)
    return known


def place_tile(
    group: Group, tiles: Tiles, level: Level, step: int, stages: int = 1
) -> Placement:
    """Return places for the buffers of one tile.

    Windows last from tile to tile where all tiles have one shape, and what operators
    have beside their tiles lies with them, if the level has room for that. So are
    copies of what is read across rows: a tile that somebody else chose may leave none.

    Args:
        group: The operators.
        tiles: What each of them computes.
        level: The memory that holds the tiles.
        step: How much of a reduction is staged at a time in explicit memory.
        stages: How many such steps it holds.
    """

    def placed(*, lasting: bool, apart: bool, rows: bool = True) -> Placement:
        return _placed(
            group,
            tiles,
            level,
            step,
            lasting=lasting,
            apart=apart,
            rows=rows,
            stages=stages,
        )

    least = placed(lasting=False, apart=True)
    one_shape = level.kind is LevelKind.CACHE and _have_one_shape(group, tiles)
    for lasting in (True, False) if least.windows and one_shape else (False,):
        for apart in (False, True) if least.beside else (False,):
            found = placed(lasting=lasting, apart=apart)
            if not level.capacity or found.size <= level.capacity:
                return found
    return placed(lasting=False, apart=True, rows=False) if least.rows else least


def _have_one_shape(group: Group, tiles: Tiles) -> bool:
    """Whether all tiles are as large as these; a stream has its own in its blocks."""
    root = group.root
    sizes = [tiles.parts[-1].box[loop].size for loop in root.parallel]
    divides = all(
        extent % max(1, size) == 0
        for extent, size in zip(root.grid_extents, sizes, strict=True)
    )
    return divides and not root.runtime and tiles.blocks is None


def _placed(
    group: Group,
    tiles: Tiles,
    level: Level,
    step: int,
    *,
    lasting: bool,
    apart: bool,
    rows: bool = True,
    stages: int = 1,
) -> Placement:
    """Place everything in one way, see `Placement`.

    Args:
        group: The operators.
        tiles: What each of them computes.
        level: The memory that holds the tiles.
        step: How much of a reduction is staged at a time in explicit memory.
        lasting: Whether windows keep their places.
        apart: Whether what operators have beside their tiles lies further out.
        rows: Whether what is read across rows is copied.
        stages: How many such steps it holds.
    """
    placement = Placement(lasting=lasting, apart=apart)
    placer = _Placer(group, tiles, level, step, placement, stages, rows=rows)
    if tiles.blocks is None:
        placer.one_after_another()
    else:
        placer.in_registers() if placer.explicit else placer.in_blocks(tiles.blocks)
    placement.size = placer.memory.high_water
    return placement


def nests_of(group: Group, blocks: Blocks | None) -> LoopNests:
    """Return the loop nests of a group; what a stream subtracts is wanted as a tile."""
    if blocks is None:
        return group.nests()
    found = (group.sources[node][1].producer for node, _ in blocks.stream.differences)
    return group.nests(frozenset(node for node in found if node is not None))


class _Placer:
    def __init__(
        self,
        group: Group,
        tiles: Tiles,
        level: Level,
        step: int,
        placement: Placement,
        stages: int,
        *,
        rows: bool,
    ) -> None:
        self.group = group
        self.nests = nests_of(group, tiles.blocks)
        self.parts = tiles.parts
        self.grid = tiles.grid
        self.blocks = tiles.blocks
        self.explicit = level.kind is LevelKind.EXPLICIT
        self.rows = rows and self.explicit
        self.advance = (step, stages) if self.explicit else None
        self.memory = BestFit(ALIGNMENT_BYTES)
        # What streams past the tiles, where it does not lie with them.
        self.further = BestFit(ALIGNMENT_BYTES)
        self.placement = placement

    def one_after_another(self) -> None:
        """Place loop nests in their order, each tile until its last reader."""
        lasting = range(len(self.group.nodes)) if self.placement.lasting else ()
        for node in lasting:
            if not self.nests.is_fused(node):
                self._stage(node, lasting=True)
        for node in range(len(self.group.nodes)):
            self._operator(node)
            for producer in self.nests.ending_at(node):
                self._release(self._tiles_of(producer))

    def in_blocks(self, blocks: Blocks) -> None:
        """Place what surrounds the blocks, and within it what a block has.

        What a block makes is there until its end.
        """
        stream, nodes = blocks.stream, range(len(self.group.nodes))
        streamed = [node for node in nodes if stream.loops[node] is not None]
        for node in nodes:
            if node not in streamed and node not in stream.after:
                self._operator(node)
        accumulators = stream.accumulators(self.group)
        for node in accumulators:
            self._tile(node)
        for top in stream.subtracted:
            self.placement.tops[top] = self._like_tile(top)
        made: list[Slot] = []
        for node in streamed:
            self._operator(node, tile=node not in accumulators)
            made += [] if node in accumulators else self._tiles_of(node)
            if node in stream.subtracted:
                self.placement.factors[node] = self._like_tile(node)
                made.append(self.placement.factors[node])
        self._release(dict.fromkeys(made))
        rescaled = dict(stream.rescaled)
        for node in nodes:
            if node in stream.after:
                self._operator(node)
            elif node in rescaled:
                factor = self._like_tile(rescaled[node].maximum)
                self.placement.factors[node] = factor
                self._release([factor])

    def in_registers(self) -> None:
        """Place what products of a stream read in blocks: all else is in registers."""
        stages = 1 if self.advance is None else self.advance[1]
        for node, number, size in streamed_reads(self.parts):
            self.placement.reads[node, node, number] = self._allocate(stages * size)

    def _operator(self, node: int, *, tile: bool = True) -> None:
        """Place what a loop nest reads and makes; what it reads is gone behind it."""
        if self.nests.is_fused(node):
            return
        staged = self._stage(node)
        beside = self._beside(node)
        if tile:
            self._tile(node)
        self._release(staged)
        memory = self.further if self.placement.apart else self.memory
        for slot in beside:
            memory.release(slot.offset)

    def _sizes_beside(self, node: int) -> dict[Role, int]:
        model, box = self.parts[node].model, self.parts[node].box
        buffers = buffers_beside(model, box)
        if buffers is None:
            return {}
        # A kernel before transforms weights that many tiles want.
        row = model.parallel[1]
        times = buffers.blocks * self.grid * box[row].size / model.extents[row]
        return buffers.sizes(in_tiles=math.ceil(times) <= IN_TILES)

    def _tile(self, node: int) -> None:
        # What leaves explicit memory at once is kept in registers.
        leaves = self.explicit and not self.group.consumers(node)
        part = self.parts[node]
        through = _bytes_of_sums(part) if self.explicit else 0
        if leaves:
            # But for sums that threads hand to others on the way.
            self._release([self._allocate(through)] if through else [])
            return
        other = self._overwritten_by(node)
        if other is not None:
            self.placement.overwritten[node] = other
            self.placement.tiles[node, 0] = self.placement.tiles[other, 0]
            return
        for number, write in enumerate(part.model.writes):
            size = max(part.results * write.element_bytes, through)
            slot = self._allocate(size)
            self.placement.tiles[node, number] = slot

    def _overwritten_by(self, node: int) -> int | None:
        """The node whose tile ends where that of another one begins, if one does."""
        if self.explicit:
            return None  # others than those that write an element may still read it
        size = self.parts[node].results
        for other in self.nests.overwritten(node):
            alike = self.parts[other].results == size
            if alike and self._lives_as_long(other, node):
                return other
        return None

    def _lives_as_long(self, one: int, other: int) -> bool:
        """Whether a stream walks both tiles block by block, or none of them."""
        if self.blocks is None:
            return True
        stream = self.blocks.stream
        kept = {*stream.accumulators(self.group), *stream.subtracted}
        in_block = [stream.loops[node] is not None for node in (one, other)]
        return one not in kept and in_block[0] == in_block[1]

    def _stage(self, root: int, *, lasting: bool = False) -> list[Slot]:
        """Place what a nest reads: what lasts for all tiles, or what ends with it."""
        found: dict[tuple[int, int], Slot] = {}
        for node in self.nests.members[root]:
            for number, is_window, size in _staged(self.parts[node], self.advance):
                if lasting != (is_window and self.placement.lasting):
                    continue
                first = self.nests.first_read(root, node, number)
                if first not in found:
                    found[first] = self._allocate(size)
                slots = self.placement.windows if is_window else self.placement.reads
                slots[root, node, number] = found[first]
        for read in self.nests.transposed_reads(root) if self.rows else ():
            if not lasting and read.is_across(self.parts[root].box):
                node, number = read.node, read.number
                first = self.nests.first_read(root, node, number)
                if first not in found:
                    found[first] = self._allocate(self._tile_bytes(node, number))
                self.placement.rows[root, node, number] = found[first]
        return list(found.values())

    def _tile_bytes(self, node: int, number: int) -> int:
        """Bytes of the tile that a read takes."""
        part = self.parts[node]
        return _bytes_of(part.model.reads[number], part.box)

    def _beside(self, node: int) -> list[Slot]:
        """Place what an operator has beside its tiles."""
        memory = self.further if self.placement.apart else self.memory
        sizes = self._sizes_beside(node)
        for role, size in sizes.items():
            slot = Slot(memory.allocate(size), size)
            self.placement.beside[node, role] = slot
        return [self.placement.beside[node, role] for role in sizes]

    def _like_tile(self, node: int) -> Slot:
        part = self.parts[node]
        return self._allocate(part.results * part.model.writes[0].element_bytes)

    def _tiles_of(self, node: int) -> list[Slot]:
        if node in self.placement.overwritten.values():
            return []
        results = range(len(self.group.nodes[node].writes))
        found = (self.placement.tiles.get((node, number)) for number in results)
        return [slot for slot in found if slot is not None]

    def _allocate(self, size: int) -> Slot:
        return Slot(self.memory.allocate(size), size)

    def _release(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self.memory.release(slot.offset)


def _staged(
    part: OperatorTile, advance: tuple[int, int] | None
) -> list[tuple[int, bool, int]]:
    """Return (read, whether it is a window with a border, bytes) of what is read.

    Found once for each kind of memory.

    Args:
        part: What an operator does.
        advance: How much of a reduction is staged at a time in explicit memory, and how
            many such steps it holds; None for a cache.
    """
    key = "staged" if advance is None else "{} of {}".format(*advance[::-1])
    known: list[tuple[int, bool, int]] | None = part.known.get(key)
    if known is None:
        found = _in_cache(part) if advance is None else _in_steps(part, *advance)
        known = part.known[key] = list(found)
    return known


def _in_cache(part: OperatorTile) -> Iterator[tuple[int, bool, int]]:
    node, box = part.model, one_block(part.model, part.box)
    for number, read in enumerate(node.reads):
        if read.padded:
            # A window with a border is a copy, whoever makes what is inside.
            size = math.prod(read.bordered(box)) * read.element_bytes
            yield number, True, size
            # What is copied is read once, and needed no more.
        elif part.outside[number]:
            yield number, False, _bytes_of(read, few_channels(node, box))


def _bytes_of_sums(part: OperatorTile) -> int:
    """Return the bytes of sums that threads hand to others behind a product."""
    padded = padded_of(part)
    product = window_product(part.model, part.box)
    if padded is not None:
        return padded.product.sum_bytes
    return 0 if product is None else product.sum_bytes


def _in_steps(
    part: OperatorTile, step: int, stages: int
) -> Iterator[tuple[int, bool, int]]:
    node, loops = part.model, list(part.box)
    # Outer reduction loops advance by one, the innermost by a step.
    for loop in node.reduction:
        most = step if loop == node.reduction[-1] else 1
        loops[loop] = Interval(ZERO, min(loops[loop].size, most))
    box = tuple(loops)
    held = min(stages, _steps_of(part, step))
    product, padded = window_product(node, part.box), padded_of(part)
    for number, read in enumerate(node.reads):
        if read.padded:
            channels = 0 if product is None else CHANNELS
            yield number, True, bordered_bytes(node, read, part.box, channels)
        elif product is not None and number == 1:
            # With the image, which lies there in another order as well.
            yield number, False, product.weight_bytes + product.image_bytes
        elif padded is not None:
            size = padded.product.step_bytes(padded.lines[number], step)
            yield number, False, held * size
        elif part.outside[number] and node.kind in STAGED_KINDS:
            yield number, False, held * _bytes_of(read, few_channels(node, box))


def buffers_beside(
    node: OperatorModel, box: Sequence[Interval]
) -> WinogradBuffers | None:
    """Return the buffers that an operator has beside its tiles, None without any.

    Args:
        node: The operator.
        box: Its iterations for a tile.
    """
    if not node.winograd:
        return None
    images, rows, high, wide = (math.ceil(box[d].size) for d in node.parallel)
    if rows % ROWS:
        return None  # windows of such rows are computed as they are
    image = (images, math.ceil(box[node.reduction[0]].size))
    form = FORMS[node.winograd]
    return winograd_buffers(form, image, (images, rows, high, wide))


def _bytes_of(read: Access, box: tuple[Interval, ...]) -> int:
    if read.gathered:
        return read.gathered_bytes(math.prod(_sizes(box)))
    return math.prod(_sizes(read.box(box))) * read.element_bytes


def _sizes(box: tuple[Interval, ...]) -> Iterator[int]:
    return (interval.size for interval in box)
