"""Owns bodies of linalg operations for the elements that a lane has in registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import arith, gpu, ir, linalg, llvm
from magweld.bindings import math as math_dialect
from magweld.passes.gpu.cross_thread_reduction import Combiner, combiner_of
from magweld.passes.gpu.linalg_structure import LoopNest, outputs_of
from magweld.passes.gpu.register_tiles import (
    Along,
    Held,
    Lanes,
    Made,
    Place,
    Tile,
)
from magweld.passes.ir.utils import located_error

_LOG2_E = 1 / math.log(2)
# Two to the power of a number, as the hardware has it; what is subnormal may be zero.
_EXP2 = {"mma": "llvm.nvvm.ex2.approx.ftz.f", "mfma": "llvm.amdgcn.exp2.f32"}

Places = Mapping[int, Place]
"""Where an element is along each loop."""


@dataclass(frozen=True)
class Bodies:
    """Computes operations that are no products.

    Attributes:
        lanes: Who computes.
        scalar: What stands for a value from around the body.
    """

    lanes: Lanes
    scalar: Callable[[Any], Any]

    def elementwise(self, op: Any, nest: LoopNest, inputs: Sequence[Tile]) -> Tile:
        """Return what an operation makes element by element."""
        (written,) = nest.output_maps
        if not any(isinstance(tile, Held) for tile in inputs):
            return Made(lambda places: self._made(op, nest, inputs, places))
        along = loops_along(op, nest, inputs)
        values = {}
        dims = tuple(Along.NOTHING if n is None else along[n] for n in written)
        for loops in self._points(nest, along, set(written)):
            key = tuple(Place() if n is None else loops[n] for n in written)
            values[key] = self._yielded(op, nest, inputs, loops)
        shape = tuple(outputs_of(op)[0].type.shape)
        return Held(dims, shape, values)

    def reduction(
        self, op: Any, nest: LoopNest, inputs: Sequence[Tile], start: Tile
    ) -> Tile:
        """Return what a reduction along columns combines with what it begins from."""
        along = loops_along(op, nest, inputs)
        (written,) = nest.output_maps
        combiner = combiner_of(op)
        reduced = [n for n in nest.reduction if nest.extents[n] > 1]
        if combiner is None or [along[n] for n in reduced] != [Along.COLUMNS]:
            raise located_error(op, "expected a reduction of rows that lanes combine")
        values = {}
        for loops in self._points(nest, along, set(written)):
            key = tuple(Place() if n is None else loops[n] for n in written)
            parts = [
                self._part(op, nest, inputs, {**loops, reduced[0]: place}, combiner)
                for place in self.lanes.places(Along.COLUMNS, nest.extents[reduced[0]])
            ]
            total = self._over_lanes(combined(combiner, parts), combiner)
            values[key] = combiner.build(total, start.at(key))
        shape = tuple(outputs_of(op)[0].type.shape)
        dims = tuple(Along.NOTHING if n is None else along[n] for n in written)
        return Held(dims, shape, values)

    def _points(
        self, nest: LoopNest, along: Mapping[int, Along], loops: set[int | None]
    ) -> list[dict[int, Place]]:
        """Return the places of a lane along some loops, nothing along others."""
        found: list[dict[int, Place]] = [{}]
        for loop, extent in enumerate(nest.extents):
            wanted = along[loop] if loop in loops else Along.NOTHING
            places = self.lanes.places(wanted, extent)
            found = [{**one, loop: place} for one in found for place in places]
        return found

    def _made(
        self, op: Any, nest: LoopNest, inputs: Sequence[Tile], places: Sequence[Place]
    ) -> Any:
        loops = {n: Place() for n in range(len(nest.extents))}
        for loop, place in zip(nest.output_maps[0], places, strict=True):
            if loop is not None:
                loops[loop] = place
        return self._yielded(op, nest, inputs, loops)

    def _yielded(
        self, op: Any, nest: LoopNest, inputs: Sequence[Tile], loops: Places
    ) -> Any:
        values = self._arguments(op, nest, inputs, loops)
        *operations, terminator = op.regions[0].blocks[0].operations
        self._clone(operations, values, nest, loops)
        (result,) = terminator.operands
        return self._value(result, values)

    def _part(
        self,
        op: Any,
        nest: LoopNest,
        inputs: Sequence[Tile],
        loops: Places,
        combiner: Combiner,
    ) -> Any:
        """What an element gives to a reduction; nothing for one behind the end."""
        values = self._arguments(op, nest, inputs, loops)
        block = op.regions[0].blocks[0]
        *operations, last, _ = block.operations
        self._clone(operations, values, nest, loops)
        total = block.arguments[len(block.arguments) - 1]
        (given,) = (v for v in last.operation.operands if v != total)
        part = self._value(given, values)
        for loop, place in loops.items():
            if self.lanes.is_behind(place, nest.extents[loop]):
                inside = self.lanes.inside(place, nest.extents[loop])
                neutral = combiner.neutral_constant()
                part = arith.SelectOp(inside, part, neutral).result
        return part

    def _arguments(
        self, op: Any, nest: LoopNest, inputs: Sequence[Tile], loops: Places
    ) -> dict[Any, Any]:
        arguments = list(op.regions[0].blocks[0].arguments)
        values = {}
        for argument, tile, map_ in zip(arguments, inputs, nest.maps, strict=False):
            if any(True for _ in argument.uses):
                places = [Place() if n is None else loops[n] for n in map_]
                values[argument] = tile.at(places)
        return values

    def _clone(
        self,
        operations: Sequence[Any],
        values: dict[Any, Any],
        nest: LoopNest,
        loops: Places,
    ) -> None:
        for op in operations:
            if isinstance(op, linalg.IndexOp):
                loop = ir.IntegerAttr(op.operation.attributes["dim"]).value
                position = self.lanes.position_inside(loops[loop], nest.extents[loop])
                values[op.result] = position
            elif isinstance(op, math_dialect.ExpOp) and _is_single(op.result):
                values[op.result] = self._exponential(self._value(op.operand, values))
            else:
                clone = op.operation.clone()
                for number, operand in enumerate(op.operation.operands):
                    clone.operands[number] = self._value(operand, values)
                values.update(zip(op.operation.results, clone.results, strict=True))

    def _value(self, value: Any, values: Mapping[Any, Any]) -> Any:
        return values[value] if value in values else self.scalar(value)

    def _exponential(self, value: Any) -> Any:
        """Build e^x as 2^(x * log2(e)), an error of 2^-17 of it.

        The product, no more than 150 where the result is a number, is rounded to f32.
        """
        f32 = ir.F32Type.get()
        factor = arith.ConstantOp(f32, ir.FloatAttr.get(f32, _LOG2_E)).result
        power = arith.MulFOp(value, factor).result
        name = _EXP2[self.lanes.layout.family]
        return llvm.CallIntrinsicOp(f32, name, [power], [], []).results_

    def _over_lanes(self, value: Any, combiner: Combiner) -> Any:
        """Combine what lanes have that share a row; all of them get it."""
        i32 = ir.IntegerType.get_signless(32)
        layout = self.lanes.layout
        for distance in layout.distances:
            offset, width = (
                arith.ConstantOp(i32, n).result for n in (distance, layout.subgroup)
            )
            other = gpu.ShuffleOp(value, offset, width, gpu.ShuffleMode.XOR)
            value = combiner.build(value, other.shuffleResult)
        return value


def combined(combiner: Combiner, parts: Sequence[Any]) -> Any:
    """Combine values pair by pair."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        rest = parts[len(parts) & ~1 :]
        parts = [*(combiner.build(a, b) for a, b in pairs), *rest]
    return parts[0]


def loops_along(op: Any, nest: LoopNest, inputs: Sequence[Tile]) -> dict[int, Along]:
    """Return what the loops of an operation are, from the tiles in registers."""
    found: dict[int, Along] = {}
    for tile, map_ in zip(inputs, nest.maps, strict=False):
        if isinstance(tile, Held):
            for loop, along in zip(map_, tile.along, strict=True):
                if loop is not None and along is not Along.NOTHING:
                    found[loop] = along
    for loop, extent in enumerate(nest.extents):
        if loop not in found:
            found[loop] = Along.NOTHING if extent == 1 else Along.COLUMNS
    long = [along for along in found.values() if along is not Along.NOTHING]
    if len(set(long)) != len(long):
        raise located_error(op, "expected rows and columns of one matrix")
    return found


def _is_single(value: Any) -> bool:
    return isinstance(value.type, ir.F32Type)
