"""Owns products of tiles whose rows lie in registers: operands, and instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import arith, ir, vector
from magweld.passes.gpu.lane_layouts import STEPS
from magweld.passes.gpu.linalg_structure import LoopNest, inputs_of, outputs_of
from magweld.passes.gpu.matrix_calls import half_pair, multiplied, vector_of
from magweld.passes.gpu.matrix_instructions import MatrixInstruction
from magweld.passes.gpu.product_loops import ProductLoops
from magweld.passes.gpu.register_tiles import (
    Along,
    Held,
    Lanes,
    Place,
    Splat,
    Stored,
    Tile,
)
from magweld.passes.gpu.right_factor import RightFactor
from magweld.passes.gpu.stream_rings import Ring
from magweld.passes.gpu.stream_warpgroups import (
    Begun,
    at_rest,
    begun_sums,
    descriptors,
    finished_sums,
)
from magweld.passes.gpu.structure import element_bytes
from magweld.passes.ir.constants import constant_number
from magweld.passes.ir.utils import located_error


@dataclass(frozen=True)
class StreamProduct:
    """A product.

    Attributes:
        op: The operation.
        nest: Its loops.
        loops: What they are.
        lanes: Who computes.
    """

    op: Any
    nest: LoopNest
    loops: ProductLoops
    lanes: Lanes

    @property
    def instruction(self) -> MatrixInstruction:
        """What computes it.

        Raises:
            PassError: Nothing does; located at the product.
        """
        types = {str(v.type.element_type) for v in inputs_of(self.op)}
        (element,) = types if len(types) == 1 else ("",)
        found = self.lanes.layout.instruction(element)
        if found is None:
            raise located_error(self.op, f"no matrix instruction for {sorted(types)}")
        return found

    def operands(self, tile: Tile) -> list[list[list[Any]]]:
        """Build what a lane has of the left factor: by fragment, step and register."""
        steps = -(-self.nest.extents[self.loops.step] // STEPS)
        return [
            [self._operand(tile, fragment, step) for step in range(steps)]
            for fragment in range(self.lanes.fragments)
        ]

    def build(
        self, left: Sequence[Sequence[Sequence[Any]]], ring: Ring, at: Any, start: Tile
    ) -> Held:
        """Build the product and what it is added to.

        Args:
            left: Operands of the left factor.
            ring: Where blocks of the right one lie.
            at: Position of the block in the stream.
            start: What is added to.
        """
        if ring.swizzled is not None:
            return self.finish(self.begin(left, ring, at, start), 0)
        return self._held(self._by_subgroups(left, ring, ring.first_row(at), start))

    def begin(
        self, left: Sequence[Sequence[Sequence[Any]]], ring: Ring, at: Any, start: Tile
    ) -> list[Begun]:
        """Build what warpgroups begin for each fragment; the ring is swizzled.

        The arguments are those of `build`.
        """
        first = ring.first_row(at)
        factor = RightFactor(self.nest, self.loops, self.lanes, ring, first)
        across = not factor.steps_side_by_side
        assert ring.swizzled is not None, "asked of those"
        view = ring.buffer.owner.opview
        steps = len(left[0])
        rights = descriptors(view, ring.swizzled, first, steps, across=across)
        sums = self._sums(start)
        columns = self._pieces * self.lanes.layout.wide
        fresh = isinstance(start, Splat) and constant_number(start.value) == 0
        return [
            begun_sums(
                left[fragment],
                rights,
                None if fresh else self._of_fragment(sums, fragment),
                columns,
                across=across,
            )
            for fragment in range(self.lanes.fragments)
        ]

    def at_rest(self, sums: Tile) -> list[Begun]:
        """Build what is finished as it is, as if it had begun."""
        values = self._sums(sums)
        steps = -(-self.nest.extents[self.loops.step] // STEPS)
        registers = steps * len(self.lanes.layout.operand(0, 0))
        return [
            at_rest(self._of_fragment(values, fragment), registers)
            for fragment in range(self.lanes.fragments)
        ]

    def finish(self, begun: Sequence[Begun], younger: int) -> Held:
        """Build a wait for what was begun.

        Args:
            begun: The product.
            younger: Fragments of others that may still be under way.
        """
        sums = {}
        for fragment, found in enumerate(finished_sums(begun, younger)):
            width = len(found) // self._pieces
            for piece in range(self._pieces):
                part = found[piece * width : (piece + 1) * width]
                sums[fragment, piece] = part
        return self._held(sums)

    def _of_fragment(
        self, sums: Mapping[tuple[int, int], list[Any]], fragment: int
    ) -> list[Any]:
        pieces = range(self._pieces)
        return [value for piece in pieces for value in sums[fragment, piece]]

    def _held(self, sums: Mapping[tuple[int, int], list[Any]]) -> Held:
        values = {
            tuple(self._key(*one)): value
            for place, found in sums.items()
            for one, value in zip(self.lanes.layout.result(*place), found, strict=True)
        }
        shape = tuple(outputs_of(self.op)[0].type.shape)
        return Held(self._along(), shape, values)

    @property
    def _pieces(self) -> int:
        layout = self.lanes.layout
        return layout.columns(self.nest.extents[self.loops.column]) // layout.width

    def _sums(self, start: Tile) -> dict[tuple[int, int], list[Any]]:
        """What is added to, by fragment of rows and piece of columns."""
        return {
            (fragment, piece): [
                start.at(self._key(*one))
                for one in self.lanes.layout.result(fragment, piece)
            ]
            for fragment in range(self.lanes.fragments)
            for piece in range(self._pieces)
        }

    def _by_subgroups(
        self,
        left: Sequence[Sequence[Sequence[Any]]],
        ring: Ring,
        first: Any,
        start: Tile,
    ) -> dict[tuple[int, int], list[Any]]:
        layout, name = self.lanes.layout, self.instruction.name
        factor = RightFactor(self.nest, self.loops, self.lanes, ring, first)
        sums = self._sums(start)
        for step in range(len(left[0])):
            rights = factor.load(self._pieces, step)
            for fragment, piece in sums:
                ours, right = left[fragment][step], rights[piece]
                if layout.family != "mma":
                    ours, right = right, ours  # of transposed products
                sums[fragment, piece] = multiplied(
                    name, ours, right, sums[fragment, piece]
                )
        return sums

    def _along(self) -> tuple[Along, ...]:
        known = {self.loops.row: Along.ROWS, self.loops.column: Along.COLUMNS}
        written = self.nest.output_maps[0]
        return tuple(
            Along.NOTHING if n is None else known.get(n, Along.NOTHING) for n in written
        )

    def _key(self, row: int, column: int) -> list[Place]:
        numbers = {Along.ROWS: row, Along.COLUMNS: column, Along.NOTHING: 0}
        return [Place(along, numbers[along]) for along in self._along()]

    def _operand(self, tile: Tile, fragment: int, step: int) -> list[Any]:
        return [
            self._register(tile, elements)
            for elements in self.lanes.layout.operand(fragment, step)
        ]

    def _register(self, tile: Tile, elements: Sequence[tuple[int, int]]) -> Any:
        """Build neighbours of a row of the left factor, as one operand."""
        map_ = self.nest.maps[self.loops.left]
        places = [self._left_places(map_, *one) for one in elements]
        if isinstance(tile, Stored):
            return loaded_neighbours(tile, places)
        extent = self.nest.extents[self.loops.step]
        values = [tile.at(one) for one in places]
        for number, (_, column) in enumerate(elements):
            place = Place(Along.COLUMNS, column)
            if self.lanes.is_behind(place, extent):
                zero = arith.ConstantOp(
                    values[number].type, ir.FloatAttr.get(values[number].type, 0.0)
                ).result
                inside = self.lanes.inside(place, extent)
                values[number] = arith.SelectOp(inside, values[number], zero).result
        pair = half_pair(*values) if len(values) == 2 else None
        return vector_of(values) if pair is None else pair

    def _left_places(
        self, map_: Sequence[int | None], row: int, column: int
    ) -> list[Place]:
        known = {
            self.loops.row: Place(Along.ROWS, row),
            self.loops.step: Place(Along.COLUMNS, column),
        }
        return [Place() if n is None else known.get(n, Place()) for n in map_]


def loaded_neighbours(tile: Stored, places: Sequence[Sequence[Place]]) -> Any:
    """Load neighbours along the columns, at once where they lie side by side."""
    columns = [n for n, one in enumerate(places[0]) if one.along is Along.COLUMNS]
    element = ir.MemRefType(tile.memory.type).element_type
    strides, _ = ir.MemRefType(tile.memory.type).get_strides_and_offset()
    width = len(places)
    known = [o for o in tile.offsets if isinstance(o, int)]
    aligned = all(o % width == 0 for o in known)
    aligned = aligned and all(s % width == 0 for s in strides if s != 1)
    if [tile.distance(n) for n in columns] == [1] and aligned:
        size = width * element_bytes(element)
        type_ = ir.VectorType.get([width], element)
        indices = tile.indices(places[0])
        return vector.LoadOp(type_, tile.memory, indices, alignment=size).result
    return vector_of([tile.at(one) for one in places])
