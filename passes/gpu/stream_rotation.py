"""Owns streams that compute the last product of a block beside the next block.

    for each block:
        scores = q @ keys; weights = f(scores); sums = sums * g + weights @ v

becomes, where products are under way while threads do something else,

    scores = q @ first keys; weights = f(scores); scaled = sums * g
    for each further block:
        begin q @ keys, then weights @ v of the block before, added to scaled
        wait for the scores; weights = f(scores)
        wait for the sums; scaled = sums * g
    sums = scaled + weights @ last v
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from magweld.bindings import ir, scf
from magweld.passes.gpu.linalg_structure import is_structured, outputs_of
from magweld.passes.gpu.register_tiles import Held, Tile, constant_index, plus
from magweld.passes.gpu.stream_blocks import StreamBlocks
from magweld.passes.gpu.stream_products import StreamProduct
from magweld.passes.gpu.stream_values import StreamValues
from magweld.passes.gpu.stream_warpgroups import Begun
from magweld.passes.gpu.streamed_operands import StreamLoop, products_in


@dataclass(frozen=True)
class Rotation:
    """The parts of the loop over blocks.

    Attributes:
        stream: The loop.
        first: Its first product.
        last: The other one, whose result goes to the next iteration alone.
        number: Which of the carried tensors that is.
        early: What is made for the last product without sums, in its order.
        late: What makes of the sums what the last product adds to.
    """

    stream: StreamLoop
    first: Any
    last: Any
    number: int
    early: tuple[Any, ...]
    late: tuple[Any, ...]

    @staticmethod
    def of(stream: StreamLoop) -> Rotation | None:
        """Return the parts of a loop; None where they are not as described."""
        loop = stream.op
        products = list(products_in(loop.body))
        *body, end = loop.body.operations
        if len(products) != 2:
            return None
        first, last = products
        (result,) = last.results
        given = list(end.operands)
        if result not in given or len(list(result.uses)) != 1:
            return None
        number = given.index(result)
        sums = loop.inner_iter_args[number]
        late = _that_need(sums, body, last)
        early = [op for op in body if op not in late and op != last]
        made = {sums, *(value for op in late for value in op.results)}
        needed = {value for op in (*early, end) for value in op.operands}
        (start,) = outputs_of(last)
        needed |= {value for value in last.operands if value != start}
        if made & needed or first in late or not all(map(is_structured, late)):
            return None
        return Rotation(stream, first, last, number, tuple(early), tuple(late))

    @property
    def others(self) -> Iterator[tuple[int, Any]]:
        """The number of each other tensor that is carried, and what it becomes."""
        *_, end = self.stream.op.body.operations
        for number, value in enumerate(end.operands):
            if number != self.number:
                yield number, value


def _that_need(sums: ir.Value, body: Sequence[Any], last: Any) -> list[Any]:
    """Return the operations that depend on sums, without the product that adds."""
    known, found = {sums}, []
    for op in body:
        if op != last and known & set(op.operands):
            known |= set(op.results)
            found.append(op)
    return found


@dataclass(frozen=True)
class Prepared:
    """What the last product of a block is computed from, and what goes on from there.

    Attributes:
        left: Operands of its left factor, by fragment, step and register.
        sums: What it adds to.
        others: The other carried tensors, by their number.
    """

    left: Sequence[Sequence[Sequence[Any]]]
    sums: Held
    others: dict[int, Held]

    def flat(self) -> list[Any]:
        """Return all values, in one order."""
        found = [value for part in self.left for step in part for value in step]
        for held in (self.sums, *self.others.values()):
            found += held.values.values()
        return found

    def of(self, flat: Sequence[Any]) -> Prepared:
        """Return the same with other values, in that order."""
        values = iter(flat)
        left = [[[next(values) for _ in step] for step in part] for part in self.left]
        sums = _with(self.sums, values)
        others = {n: _with(held, values) for n, held in self.others.items()}
        return Prepared(left, sums, others)


def _with(held: Held, values: Iterator[Any]) -> Held:
    return Held(held.along, held.shape, {key: next(values) for key in held.values})


class Builder(Protocol):
    """Builds operations of a kernel.

    Attributes:
        values: What stands for values of the kernel.
        blocks: How blocks come to rings.
    """

    values: StreamValues
    blocks: StreamBlocks

    def build(self, op: Any) -> None:
        """Build an operation."""

    def product(self, op: Any) -> StreamProduct:
        """Return a product."""

    def factors(self, product: StreamProduct) -> tuple[Any, Tile]:
        """Build the operands of the left factor; return them and what is added to."""


class RotatedStream:
    """Builds the loop over blocks so."""

    def __init__(self, kernel: Builder, rotation: Rotation) -> None:
        """Say what is built, and by what."""
        self._kernel = kernel
        self._parts = rotation
        self._size, self._upper = rotation.stream.step, rotation.stream.upper
        self._arguments = list(rotation.stream.op.inner_iter_args)
        self._last = kernel.product(rotation.last)

    def build(self) -> None:
        """Build the first block, the loop over all others, and the last product."""
        values, blocks, op = self._kernel.values, self._kernel.blocks, self._loop
        blocks.rotate()
        for argument, value in zip(self._arguments, op.initArgs, strict=True):
            values.tiles[argument] = values.held(value, value.type.shape)
        blocks.copy_first()
        values.scalars[op.induction_variable] = constant_index(0)
        blocks.wait_for_first()
        first = self._block(0, None)
        step = constant_index(self._size)
        made = scf.ForOp(step, constant_index(self._upper), step, first.flat())
        with ir.InsertionPoint(made.body):
            at = made.induction_variable
            values.scalars[op.induction_variable] = at
            blocks.enter(at)
            before = first.of(list(made.inner_iter_args))
            scf.YieldOp(self._block(at, before).flat())
        end = first.of(list(made.results))
        blocks.enter(self._upper)
        sums = self._last.finish(self._begin_last(end, self._upper), 0)
        for number, held in end.others.items():
            values.tiles[op.results[number]] = held
        values.tiles[op.results[self._parts.number]] = sums
        blocks.leave()

    @property
    def _loop(self) -> scf.ForOp:
        return self._parts.stream.op

    def _block(self, at: Any, before: Prepared | None) -> Prepared:
        """Build the block at a position, beside the last product of that before."""
        kernel, parts = self._kernel, self._parts
        tiles = kernel.values.tiles
        likes = {n: tiles[self._arguments[n]] for n, _ in parts.others}
        if before is not None:
            likes = dict(before.others)
            tiles.update((self._arguments[n], held) for n, held in likes.items())
        begun: list[Begun] = []
        for op in parts.early:
            if op != parts.first:
                kernel.build(op)
                continue
            product = kernel.product(op)
            left, start = kernel.factors(product)
            scores = product.begin(left, kernel.blocks.rings[0], at, start)
            if before is not None:
                begun = self._begin_last(before, at)
            tiles[op.results[0]] = product.finish(scores, len(begun))
        if before is not None:
            sums = self._last.finish(begun, 0)
            tiles[self._arguments[parts.number]] = sums
        for op in parts.late:
            kernel.build(op)
        return self._prepared(likes)

    def _begin_last(self, before: Prepared, at: Any) -> list[Begun]:
        """Build the last product of the block in front of a position."""
        size = self._size
        place = at - size if isinstance(at, int) else plus(at, -size)
        *_, ring = self._kernel.blocks.rings
        return self._last.begin(before.left, ring, place, before.sums)

    def _prepared(self, likes: dict[int, Any]) -> Prepared:
        values = self._kernel.values
        left, _ = self._kernel.factors(self._last)
        (start,) = outputs_of(self._parts.last)
        others = {
            number: values.held(value, value.type.shape, likes[number])
            for number, value in self._parts.others
        }
        return Prepared(left, values.held(start, start.type.shape), others)
