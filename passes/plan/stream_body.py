"""Owns the body of a tile that walks a dimension in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from magweld.bindings import arith, ir, linalg, math, scf
from magweld.dialects.tile_graph import REMATERIALIZED
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.plan.tile_emitter import TileEmitter
from magweld.passes.plan.tile_slices import Box, TileSlicer
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Refusal, propagate
from magweld.passes.tiling.regions import STREAM
from magweld.passes.tiling.stream import Blocks, Rescaling

# Stands for minus infinity in differences, so that none of two of it arises.
_LOWEST = {
    "f64": -1.7976931348623157e308,
    "f32": -3.4028234663852886e38,
    "bf16": -3.3895313892515355e38,
    "f16": -65504.0,
}

Body = Callable[..., Any]


def emit_stream(
    emitter: TileEmitter,
    slicer: TileSlicer,
    group: Group,
    tile: tuple[int, ...],
    blocks: Blocks,
) -> None:
    """Compute the operators of a tile, those of the stream block by block.

    What the stream reduces is carried from block to block, every maximum that is
    subtracted twice: as it is, and no lower than the lowest finite number. Sums of
    exponentials are taken to the second one, which the last step turns into what the
    operators subtract.

    Args:
        emitter: Emits single operators.
        slicer: Told where in the stream its slices are.
        group: The operators.
        tile: Sizes along the parallel loops of the last one.
        blocks: The stream; the last block may be smaller.
    """
    size, extent = blocks.size, blocks.stream.extent
    body = _StreamBody(emitter, group, blocks, _boxes(group, tile, blocks))
    body.before()
    whole = extent - extent % size
    start = body.initial()
    around = emitter.live.all()
    loop = scf.ForOp(_index(0), _index(whole), _index(size), start)
    with ir.InsertionPoint(loop.body):
        slicer.enter(STREAM, loop.induction_variable)
        carried = body.block(list(loop.inner_iter_args), body.boxes)
        emitter.live.release_all_but(around)
        scf.YieldOp(carried)
    carried = list(loop.results)
    if whole < extent:
        slicer.enter(STREAM, _index(whole))
        rest = Blocks(blocks.stream, extent - whole)
        carried = body.block(carried, _boxes(group, tile, rest))
        emitter.live.release_all_but(around)
    body.finish(carried)


def _boxes(group: Group, tile: tuple[int, ...], blocks: Blocks) -> tuple[Box, ...]:
    tiles = propagate(group, tile, blocks)
    assert not isinstance(tiles, Refusal), "propagated before"
    return tiles.boxes


@dataclass(frozen=True)
class _StreamBody:
    """The parts of a streamed tile.

    Attributes:
        emitter: Emits single operators.
        group: The operators.
        blocks: The stream.
        boxes: The iterations of each operator, for a block in the stream.
    """

    emitter: TileEmitter
    group: Group
    blocks: Blocks
    boxes: tuple[Box, ...]

    @cached_property
    def _accumulators(self) -> tuple[int, ...]:
        return self.blocks.stream.accumulators(self.group)

    @cached_property
    def _rescaled(self) -> dict[int, Rescaling]:
        return dict(self.blocks.stream.rescaled)

    def before(self) -> None:
        """Compute what the stream does not change."""
        stream = self.blocks.stream
        for number, box in enumerate(self.boxes):
            if stream.loops[number] is None and number not in stream.after:
                self.emitter.emit(number, box)

    def initial(self) -> list[Any]:
        """Return what the loop starts with: accumulators, then subtracted maxima."""
        found = [self.emitter.initial(i, self.boxes[i]) for i in self._accumulators]
        of_number = dict(zip(self._accumulators, found, strict=True))
        for number in self.blocks.stream.subtracted:
            top = self.emitter.allocate_top(number, of_number[number].type)
            type_ = ir.RankedTensorType(top.type)
            found.append(
                self.emitter.part(
                    number,
                    type_,
                    partial(_filled, _LOWEST[str(type_.element_type)], top),
                )
            )
        return found

    def block(self, carried: Sequence[Any], boxes: Sequence[Box]) -> list[Any]:
        """Compute one block; return what the next one starts with."""
        count = len(self._accumulators)
        sums = dict(zip(self._accumulators, carried[:count], strict=True))
        subtracted = self.blocks.stream.subtracted
        tops = dict(zip(subtracted, carried[count:], strict=True))
        factors: dict[int, Any] = {}
        for number, box in enumerate(boxes):
            if self.blocks.stream.loops[number] is None:
                continue
            start = sums.get(number)
            if number in self._rescaled:
                rescaling = self._rescaled[number]
                factor = factors[rescaling.maximum]
                start = self._multiplied(number, start, factor, rescaling.rows)
            self.emitter.emit(number, box, start)
            if number in sums:
                sums[number] = self.emitter.tile_of(number)
            if number in tops:
                factors[number] = self._factor(
                    number, tops[number], sums[number], arith.maximumf
                )
                tops[number] = self._risen(number, tops[number], sums[number])
                self._subtract(number, tops[number])
        return [*sums.values(), *tops.values()]

    def _subtract(self, maximum: int, value: Any) -> None:
        """Subtract a value wherever a maximum, or what is made of it, would be."""
        for node, top in self.blocks.stream.differences:
            reference = self.group.sources[node][1].producer
            if top == maximum and reference is not None:
                self.emitter.bind(reference, value, self.boxes[reference])

    def finish(self, carried: Sequence[Any]) -> None:
        """Compute what needs the stream to be over, and store what is read outside."""
        count = len(self._accumulators)
        sums = dict(zip(self._accumulators, carried[:count], strict=True))
        subtracted = self.blocks.stream.subtracted
        tops = dict(zip(subtracted, carried[count:], strict=True))
        for number, box in enumerate(self.boxes):
            if number in self.blocks.stream.after:
                self.emitter.emit(number, box)
            elif number in sums:
                value = sums[number]
                if number in self._rescaled:
                    value = self._settled(number, value, tops)
                self.emitter.bind(number, value, box)
        for number in range(len(self.boxes)):
            self.emitter.store(number)
        self.emitter.live.release_all_but()

    def _settled(self, number: int, value: Any, tops: dict[int, Any]) -> Any:
        """A sum of exponentials taken to what the operators subtract."""
        rescaling, around = self._rescaled[number], self.emitter.live.all()
        to = self.emitter.tile_of(rescaling.reference)
        factor = self._factor(number, tops[rescaling.maximum], to, _second)
        # Each sum has a factor of its own, which is made where it is multiplied.
        *_, made, _ = factor.owner.operation.regions[0].blocks[0].operations
        mark = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
        made.operation.attributes[REMATERIALIZED] = mark
        value = self._multiplied(number, value, factor, rescaling.rows)
        self.emitter.live.release_all_but(around)
        return value

    def _factor(self, number: int, old: Any, new: Any, subtracted: Body) -> Any:
        """What brings a sum to another subtracted value: exp(old - subtracted)."""
        into = self.emitter.allocate_factor(number, old.type)

        def body(before: Any, after: Any, _: Any) -> Any:
            return math.exp(arith.subf(before, subtracted(before, after)))

        maps = [_identity(old)] * 3
        build = partial(_elementwise, [old, new], into, maps, body)
        return self.emitter.part(number, old.type, build)

    def _risen(self, number: int, top: Any, value: Any) -> Any:
        """The higher one of a subtracted maximum and a new one, in its own place."""
        maps = [_identity(value)] * 2
        build = partial(_elementwise, [value], top, maps, arith.maximumf)
        return self.emitter.part(number, top.type, build)

    def _multiplied(
        self, number: int, total: Any, factor: Any, rows: tuple[int | None, ...]
    ) -> Any:
        """A sum with its rows multiplied, in its own place."""
        index = [
            ir.AffineConstantExpr.get(0) if row is None else ir.AffineDimExpr.get(row)
            for row in rows
        ]
        rank = len(ir.RankedTensorType(total.type).shape)
        maps = [ir.AffineMap.get(rank, 0, index), _identity(total)]
        build = partial(_elementwise, [factor], total, maps, _scaled)
        return self.emitter.part(number, total.type, build)


def _scaled(by: Any, out: Any) -> Any:
    return arith.mulf(out, by)


def _second(_: Any, value: Any) -> Any:
    return value


def _identity(value: Any) -> Any:
    return ir.AffineMap.get_identity(len(ir.RankedTensorType(value.type).shape))


def _filled(number: float, tile: Any) -> Any:
    element = ir.RankedTensorType(tile.type).element_type
    value = arith.constant(element, ir.FloatAttr.get(element, number))
    return linalg.fill(value, outs=[tile])


def _index(value: int) -> Any:
    return arith.constant(ir.IndexType.get(), value)


def _elementwise(inputs: list[Any], output: Any, maps: list[Any], body: Body) -> Any:
    made = build_generic(inputs, [output], maps, lambda values: [body(*values)])
    return made.results[0]
