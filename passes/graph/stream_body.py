"""Owns the body of a tile that walks a dimension in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from magweld.bindings import arith, ir, linalg, math, scf, tensor
from magweld.passes.analysis.propagation import Blocks, Group, Refusal, propagate
from magweld.passes.analysis.regions import STREAM
from magweld.passes.analysis.stream import Rescaling
from magweld.passes.graph.tile_emitter import TileEmitter
from magweld.passes.graph.tile_slices import Box, TileSlicer

# Stands for minus infinity in differences, so that none of two of it arises.
_LOWEST = {
    "f64": -1.7976931348623157e308,
    "f32": -3.4028234663852886e38,
    "bf16": -3.3895313892515355e38,
    "f16": -65504.0,
}


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
    loop = scf.ForOp(_index(0), _index(whole), _index(size), body.initial())
    with ir.InsertionPoint(loop.body):
        slicer.enter(STREAM, loop.induction_variable)
        scf.YieldOp(body.block(list(loop.inner_iter_args), body.boxes))
    carried = list(loop.results)
    if whole < extent:
        slicer.enter(STREAM, _index(whole))
        rest = Blocks(blocks.stream, extent - whole)
        carried = body.block(carried, _boxes(group, tile, rest))
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

    @cached_property
    def _subtracted(self) -> tuple[int, ...]:
        """The maxima that are subtracted."""
        return tuple(sorted({top for _, top in self.blocks.stream.differences}))

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
        for number in self._subtracted:
            type_ = ir.RankedTensorType(of_number[number].type)
            found.append(linalg.fill(_lowest(type_), outs=[_empty(type_)]))
        return found

    def block(self, carried: Sequence[Any], boxes: Sequence[Box]) -> list[Any]:
        """Compute one block; return what the next one starts with."""
        count = len(self._accumulators)
        sums = dict(zip(self._accumulators, carried[:count], strict=True))
        tops = dict(zip(self._subtracted, carried[count:], strict=True))
        factors: dict[int, Any] = {}
        for number, box in enumerate(boxes):
            if self.blocks.stream.loops[number] is None:
                continue
            start = sums.get(number)
            if number in self._rescaled:
                rescaling = self._rescaled[number]
                start = _multiplied(start, factors[rescaling.maximum], rescaling.rows)
            self.emitter.emit(number, box, start)
            if number in sums:
                sums[number] = self.emitter.tile_of(number)
            if number in tops:
                factors[number] = _factor(tops[number], sums[number], arith.maximumf)
                tops[number] = _risen(tops[number], sums[number])
                self._subtract(number, tops[number])
        return [*sums.values(), *tops.values()]

    def _subtract(self, maximum: int, value: Any) -> None:
        """Subtract a value wherever a maximum, or what is made of it, would be."""
        for node, top in self.blocks.stream.differences:
            reference = self.group.sources[node][1].producer
            if top == maximum and reference is not None:
                self.emitter.bind(reference, value, self.boxes[reference])

    def finish(self, carried: Sequence[Any]) -> None:
        """Compute what needs the stream to be over."""
        count = len(self._accumulators)
        sums = dict(zip(self._accumulators, carried[:count], strict=True))
        tops = dict(zip(self._subtracted, carried[count:], strict=True))
        for number, box in enumerate(self.boxes):
            if number in self.blocks.stream.after:
                self.emitter.emit(number, box)
            elif number in sums:
                value = sums[number]
                if number in self._rescaled:
                    rescaling = self._rescaled[number]
                    to = self.emitter.tile_of(rescaling.reference)
                    factor = _factor(tops[rescaling.maximum], to, _second)
                    value = _multiplied(value, factor, rescaling.rows)
                self.emitter.bind(number, value, box)


Body = Callable[..., Any]


def _factor(old: Any, new: Any, subtracted: Body) -> Any:
    """What brings a sum to another subtracted value: exp(old - subtracted)."""
    type_ = ir.RankedTensorType(old.type)

    def body(before: Any, after: Any, _: Any) -> Any:
        return math.exp(arith.subf(before, subtracted(before, after)))

    same = ir.AffineMap.get_identity(len(type_.shape))
    return _elementwise([old, new], _empty(type_), [same] * 3, body)


def _risen(top: Any, value: Any) -> Any:
    """The higher one of a subtracted maximum and a new one, in its own place."""
    same = ir.AffineMap.get_identity(len(ir.RankedTensorType(value.type).shape))
    return _elementwise([value], top, [same] * 2, arith.maximumf)


def _multiplied(total: Any, factor: Any, rows: tuple[int | None, ...]) -> Any:
    """A sum with its rows multiplied, in its own place."""
    rank = len(ir.RankedTensorType(total.type).shape)
    index = [
        ir.AffineConstantExpr.get(0) if row is None else ir.AffineDimExpr.get(row)
        for row in rows
    ]
    maps = [ir.AffineMap.get(rank, 0, index), ir.AffineMap.get_identity(rank)]
    return _elementwise([factor], total, maps, lambda by, out: arith.mulf(out, by))


def _second(_: Any, value: Any) -> Any:
    return value


def _lowest(type_: Any) -> Any:
    element = type_.element_type
    return arith.constant(element, ir.FloatAttr.get(element, _LOWEST[str(element)]))


def _empty(type_: Any) -> Any:
    return tensor.EmptyOp(list(type_.shape), type_.element_type).result


def _index(value: int) -> Any:
    return arith.constant(ir.IndexType.get(), value)


def _elementwise(inputs: list[Any], output: Any, maps: list[Any], body: Body) -> Any:
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    generic = linalg.GenericOp(
        [output.type],
        inputs,
        [output],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
        ir.ArrayAttr.get([parallel] * maps[-1].n_dims),
    )
    elements = [
        ir.RankedTensorType(value.type).element_type for value in (*inputs, output)
    ]
    location = ir.Location.current
    block = generic.regions[0].blocks.append(
        *elements, arg_locs=[location] * len(elements)
    )
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(*block.arguments)])
    return generic.results[0]
