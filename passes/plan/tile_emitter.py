"""Owns what the operators of a subgraph become in the plan of one tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from magweld.bindings import ir, linalg
from magweld.dialects.tile_graph import (
    INTERIOR,
    Role,
    build_allocate,
    build_compute,
    build_load,
    build_store,
    captured_values,
    root_operation,
    type_bytes,
    yield_values,
)
from magweld.passes.analysis.graph_body import GraphBody, source_value
from magweld.passes.analysis.operator_model import inputs_of, root_accesses
from magweld.passes.ir.cloning import ValueMap, clone_helper, clone_mapped
from magweld.passes.ir.pads import static_pad
from magweld.passes.plan.fused_root import fuse_producers
from magweld.passes.plan.root_on_tiles import RootOnTiles, made_tile
from magweld.passes.plan.tile_memory import LiveTiles, TileMemory
from magweld.passes.plan.tile_parts import bordered, joined
from magweld.passes.plan.tile_slices import (
    Box,
    TileSlicer,
    kept_sizes,
    relative_box,
    whole_box,
)
from magweld.passes.tiling.loop_nests import FUSING_KINDS, LoopNests
from magweld.passes.tiling.placement import Slot
from magweld.passes.tiling.regions import (
    Access,
    Interval,
    LinearIndex,
    OperatorKind,
)
from magweld.passes.tiling.steps import reduction_block


class TileEmitter:
    """Emits the operators of one tile; values of results are boxes of them."""

    def __init__(
        self,
        subgraph: Any,
        body: GraphBody,
        slicer: TileSlicer,
        memory: TileMemory,
        nests: LoopNests,
    ) -> None:
        """Take what is planned; nothing is `live` yet.

        Args:
            subgraph: The operators.
            body: What is known of them.
            slicer: Makes positions.
            memory: Where tiles lie.
            nests: Which operators are computed for the readers of what they make.
        """
        self._body = body
        self._slicer = slicer
        self._memory = memory
        self._nests = nests
        # What the loop nest reads that is emitted, and what it computes for itself.
        self._root = 0
        self._taken: dict[tuple[int, int], Any] = {}
        self._inner: dict[int, OperatorOnTiles] = {}
        self._makers = {
            value: number
            for number, operator in enumerate(body.operators)
            for value in operator.results
        }
        self._outside = frozenset(inputs_of(subgraph))
        *_, terminator = subgraph.regions[0].blocks[0].operations
        self._results = {value: i for i, value in enumerate(terminator.operands)}
        self._tiles: dict[Any, tuple[Any, Box]] = {}
        # What results were computed into.
        self._into: dict[Any, Any] = {}
        self.live = LiveTiles()

    def emit(self, number: int, box: Box, accumulator: Any | None = None) -> None:
        """Compute one operator for a box of its iterations, with what it fuses.

        Nothing happens for one whose readers compute it.

        Args:
            number: Position of the operator.
            box: Its iterations.
            accumulator: What it accumulates into instead of its own initial value.
        """
        if self._nests.is_fused(number):
            return
        self._root, self._taken, self._inner = number, {}, {}
        known = self.live.all()
        with root_operation(self._body.operators[number]).location:
            kind = self._body.models[number].kind
            if kind is OperatorKind.CONCATENATION:
                self._emit_concatenation(number, box)
            elif self._body.models[number].tileable:
                self._emit_tiled(number, box, accumulator)
            else:
                self._emit_whole(number)
            results = self._body.operators[number].results
            made = {self._into[r] for r in results if r in self._into}
            self.live.release_all_but(known | made)

    def initial(self, number: int, box: Box) -> Any:
        """Return what an operator with one result accumulates into at first."""
        operator, model = self._body.operators[number], self._body.models[number]
        root = root_operation(operator)
        init = root.operands[len(root.operands) - 1]
        with root.location:
            region = model.writes[0].box(box)
            into = self._allocate_result(number, 0, region)
            return self.part(
                number,
                into.type,
                lambda: made_tile(init, region, into, ValueMap(), self._slicer),
            )

    def part(self, number: int, type_: Any, build: Callable[[], Any]) -> Any:
        """Compute a part of what an operator does, and return its result.

        Args:
            number: Position of the operator.
            type_: Type of the result.
            build: Makes the operations, and returns the result.
        """
        (made,) = self._compute(number, [type_], lambda: [build()])
        return made

    def allocate(self, type_: Any, slot: Slot | None) -> Any:
        """Return a tile without contents."""
        place = self._memory.place(slot, type_bytes(type_))
        return self.live.add(build_allocate(type_, place))

    def _allocate_window(self, type_: Any, slot: Slot | None) -> Any:
        place = self._memory.place(slot, type_bytes(type_))
        lasting = place is not None and self._memory.placement.lasting
        role = Role.WINDOW
        return self.live.add(build_allocate(type_, place, role, lasting=lasting))

    def _allocate_beside(self, number: int, box: Box) -> None:
        """Allocate what an operator has beside its tiles."""
        byte, model = ir.IntegerType.get_signless(8), self._body.models[number]
        for role, size, place in self._memory.beside(number, model, box):
            type_ = ir.RankedTensorType.get([size], byte)
            self.live.add(build_allocate(type_, place, role))

    def allocate_top(self, number: int, type_: Any) -> Any:
        """Return a tile for a maximum of a stream that is subtracted."""
        return self.allocate(type_, self._memory.placement.tops.get(number))

    def allocate_factor(self, number: int, type_: Any) -> Any:
        """Return a tile for what brings sums of a stream to another maximum."""
        return self.allocate(type_, self._memory.placement.factors.get(number))

    def tile_of(self, number: int) -> Any:
        """Return the tile of the first result of an operator."""
        return self._tiles[self._body.operators[number].results[0]][0]

    def bind(self, number: int, tile: Any, box: Box) -> None:
        """Say what stands for the first result of an operator from now on."""
        region = self._body.models[number].writes[0].box(box)
        self._tiles[self._body.operators[number].results[0]] = (tile, region)

    def store(self, number: int) -> None:
        """Store what others than the operators of the plan read of an operator."""
        model, operator = self._body.models[number], self._body.operators[number]
        for value, write in zip(operator.results, model.writes, strict=True):
            if value in self._results:
                tile, box = self._tiles[value]
                region = self._memory.stored(write, box, self._slicer)
                with root_operation(operator).location:
                    build_store(tile, self._into[value], self._results[value], region)

    def release(self, number: int) -> None:
        """Free the places of what an operator makes, unless others lie in them."""
        if number in self._memory.placement.overwritten.values():
            return
        results = self._body.operators[number].results
        self.live.release(filter(None, map(self._into.get, results)))

    def _compute(
        self,
        number: int,
        types: list[Any],
        build: Callable[[], list[Any]],
        block: int | None = None,
    ) -> list[Any]:
        name = ir.StringAttr(self._body.operators[number].attributes["op_name"]).value
        compute = build_compute(name, types, block)
        with ir.InsertionPoint(compute.operation.regions[0].blocks[0]):
            yield_values(build())
        return list(compute.operation.results)

    def _allocate_result(self, number: int, result: int, region: Box) -> Any:
        value = self._body.operators[number].results[result]
        element = ir.RankedTensorType(value.type).element_type
        type_ = ir.RankedTensorType.get([i.size for i in region], element)
        other = self._memory.placement.overwritten.get(number)
        if other is not None:
            before = self._body.operators[other].results[0]
            tile, _ = self._tiles[before]
            if tile.type == type_:
                self._into[value] = self._into[before]
                return tile
            # One that is smaller at an edge lies outside of the plan.
            self._into[value] = self.allocate(type_, None)
            return self._into[value]
        slot = self._memory.placement.tiles.get((number, result))
        self._into[value] = self.allocate(type_, slot)
        return self._into[value]

    def _emit_whole(self, number: int) -> None:
        """An operator without known regions is computed whole, in one tile."""
        operator, model = self._body.operators[number], self._body.models[number]
        values = ValueMap()
        for position, read in enumerate(model.reads):
            value = self._body.inputs[number][read.argument]
            values[value] = self._load(number, position, whole_box(read.shape))
        boxes = [whole_box(write.shape) for write in model.writes]
        for result, region in enumerate(boxes):
            self._allocate_result(number, result, region)

        def build() -> list[Any]:
            for value in captured_values(operator):
                clone_helper(value, values)
            *operations, terminator = operator.regions[0].blocks[0].operations
            for op in operations:
                clone_mapped(op, values)
            return [values[inner] for inner in terminator.operands]

        types = [result.type for result in operator.results]
        made = self._compute(number, types, build)
        for result, tile, region in zip(operator.results, made, boxes, strict=True):
            self._tiles[result] = (tile, region)

    def _emit_concatenation(self, number: int, box: Box) -> None:
        """Move a part of each operand into the tile, one behind the other."""
        model = self._body.models[number]
        root = root_operation(self._body.operators[number])
        along = ir.IntegerAttr(root.attributes["dim"]).value
        parts = [
            self._part_of(number, position, read.box(box))
            for position, read in enumerate(model.reads)
        ]
        region = model.writes[0].box(box)
        into = self._allocate_result(number, 0, region)
        build = partial(joined, parts, into, along)
        self.bind(number, self.part(number, into.type, build), box)

    def _emit_tiled(self, number: int, box: Box, accumulator: Any | None) -> None:
        operator, model = self._body.operators[number], self._body.models[number]
        on_tiles = self._on_tiles(number, box)
        tiles = on_tiles.tiles
        regions = [write.box(box) for write in model.writes]
        inits = len(root_operation(operator).operands) - len(regions)
        into = {}
        for result, region in enumerate(regions):
            if accumulator is None:
                into[inits + result] = self._allocate_result(number, result, region)
            else:
                tiles[inits + result] = accumulator
        types = [(tiles | into)[inits + i].type for i in range(len(regions))]
        block = reduction_block(model, box) if self._memory.cached else None
        interior = self._interior(number, box) if model.winograd else None

        def build() -> list[Any]:
            results = on_tiles.clone(into)
            if model.kind in FUSING_KINDS:
                made = fuse_producers(results[0].owner.operation)
                results = list(made.results)
            if interior is not None:
                results[0].owner.operation.attributes[INTERIOR] = interior
            return results

        self._allocate_beside(number, box)
        made = self._compute(number, types, build, block)
        for result, tile, region in zip(operator.results, made, regions, strict=True):
            self._tiles[result] = (tile, region)

    def _on_tiles(self, number: int, box: Box) -> OperatorOnTiles:
        """An operator on the tiles of the operands that it does not make itself."""
        model = self._body.models[number]
        root = root_operation(self._body.operators[number])
        accesses = root_accesses(root)
        positions = [i for i, access in enumerate(accesses) if access.argument >= 0]
        tiles: dict[int, Any] = {}
        inner: dict[int, OperatorOnTiles] = {}
        for read, position in enumerate(positions):
            fused = self._fused(number, read, box)
            if fused is not None:
                inner[position] = fused
            else:
                tiles[position] = self._read(number, read, root.operands[position], box)
        helpers = ValueMap()
        for position, access in enumerate(model.reads):
            if access.gathered:
                source = self._body.inputs[number][access.argument]
                points = math.prod(interval.size for interval in box)
                region = access.box(box)
                helpers[source] = self._load(number, position, region, points)
        on_tiles = RootOnTiles(root, accesses, box, self._slicer)
        return OperatorOnTiles(on_tiles, tiles, inner, helpers)

    def _fused(self, number: int, position: int, box: Box) -> OperatorOnTiles | None:
        """What makes an operand in the loop nest of its reader, None for a tile."""
        read = self._body.models[number].reads[position]
        value = source_value(self._body.inputs[number][read.argument])
        maker = self._makers.get(value)
        if maker is None or not self._nests.is_fused(maker):
            return None
        if maker not in self._inner:
            region = self._body.models[maker].box_for_result(read.box(box))
            self._inner[maker] = self._on_tiles(maker, region)
        return self._inner[maker]

    def _load(self, number: int, position: int, region: Box, points: int = 0) -> Any:
        """A tile of what a read takes from outside, behind all slices at once."""
        read = self._body.models[number].reads[position]
        value = self._body.inputs[number][read.argument]
        source = value if value in self._outside else source_value(value)
        element = ir.RankedTensorType(source.type).element_type
        type_ = ir.RankedTensorType.get(kept_sizes(region, read.kept), element)
        # In steps, or looked up by values, less of it is there than all.
        at = (self._root, number, position)
        slot = self._memory.placement.reads.get(at)
        size = type_bytes(type_)
        place = self._memory.place(slot, min(slot.size, size) if slot else size)
        loaded = self._memory.loaded(read, region, points, self._slicer)
        return self.live.add(build_load(source, loaded, type_, place))

    def _read(self, number: int, position: int, value: Any, box: Box) -> Any:
        first = self._nests.first_read(self._root, number, position)
        if first not in self._taken:
            read = self._body.models[number].reads[position]
            if read.padded:
                taken = self._padded(number, position, value, box)
            elif (self._root, number, position) in self._memory.placement.rows:
                taken = self._copied(number, position, read.box(box))
            else:
                taken = self._part_of(number, position, read.box(box))
            self._taken[first] = taken
        return self._taken[first]

    def _copied(self, number: int, position: int, region: Box) -> Any:
        """A copy of what a read takes from outside across the rows of a tile."""
        tile = self._load(number, position, region)
        slot = self._memory.placement.rows[self._root, number, position]
        into = self.allocate(tile.type, slot)
        return self.part(number, tile.type, lambda: linalg.copy(tile, outs=[into]))

    def _part_of(self, number: int, position: int, region: Box) -> Any:
        """A region of what a read reads: of a tile, or from outside."""
        read = self._body.models[number].reads[position]
        source = source_value(self._body.inputs[number][read.argument])
        if source not in self._tiles:
            return self._load(number, position, region)
        tile, origin = self._tiles[source]
        return self._slicer.slice(tile, relative_box(region, origin), read.kept)

    def _interior(self, number: int, box: Box) -> ir.DictAttr | None:
        """What of the tile behind a window is no border; None without a border."""
        read = self._body.models[number].reads[0]
        pad = static_pad(root_operation(self._body.operators[number]).operands[0])
        if pad is None or not read.padded:
            return None
        known = {
            "low": pad.low,
            "sizes": _sizes_inside(read, box),
            "whole": read.bordered(box),
        }
        return ir.DictAttr.get(
            {name: ir.DenseI64ArrayAttr.get(list(n)) for name, n in known.items()}
        )

    def _padded(self, number: int, position: int, value: Any, box: Box) -> Any:
        """The window of a tensor with a border around it.

        What the window has of the tensor is moved to the inside of a tile with the
        whole border around it. Near an edge it is more than is wanted and lies
        elsewhere, so that is where the window is read: all sizes are static.
        """
        read, pad = self._body.models[number].reads[position], static_pad(value)
        assert pad is not None, "padded operands are such pads"
        window, sizes = read.window(box), _sizes_inside(read, box)
        wanted = tuple(
            Interval(i.offset, size) for i, size in zip(window, sizes, strict=True)
        )
        inside = self._slicer.inside(wanted, read.shape)
        tile = self._part_of(number, position, inside)
        element = ir.RankedTensorType(tile.type).element_type
        around = ir.RankedTensorType.get(list(read.bordered(box)), element)
        at = (self._root, number, position)
        slot = self._memory.placement.windows.get(at)
        into = self._allocate_window(around, slot)
        build = partial(bordered, tile, into, pad, sizes)
        whole = self.part(number, around, build)
        shifted = tuple(
            Interval(LinearIndex(i.offset.terms, i.offset.constant + low), i.size)
            for i, low in zip(window, pad.low, strict=True)
        )
        return self._slicer.slice(whole, relative_box(shifted, inside))


@dataclass
class OperatorOnTiles:
    """An operator whose operands are tiles, or are made for it alone.

    Attributes:
        root: Its root.
        tiles: What stands for operands, by position.
        inner: What makes others in the same loop nest.
        helpers: What stands for values that its body reads from outside.
    """

    root: RootOnTiles
    tiles: dict[int, Any]
    inner: dict[int, OperatorOnTiles]
    helpers: ValueMap

    def clone(self, into: Mapping[int, Any]) -> list[Any]:
        """Make the operation, and those that it fuses, at the insertion point.

        Args:
            into: What results are computed into, by position of the operand.
        """
        made = {position: one.result for position, one in self.inner.items()}
        return self.root.clone(self.tiles | made, into, self.helpers)

    @cached_property
    def result(self) -> Any:
        """What it makes in registers, made when it is first asked for."""
        return self.clone({})[0]


def _sizes_inside(read: Access, box: Box) -> list[int]:
    """How much of a tensor a window with a border has along each dimension."""
    window = read.window(box)
    return [min(i.size, e) for i, e in zip(window, read.shape, strict=True)]
