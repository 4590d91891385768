"""Owns the building of streams whose last product runs beside the next block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from magweld.bindings import ir, scf
from magweld.passes.gpu.register_tiles import Held, Tile, constant_index, plus
from magweld.passes.gpu.stream_blocks import StreamBlocks
from magweld.passes.gpu.stream_products import StreamProduct
from magweld.passes.gpu.stream_rotation import Rotation
from magweld.passes.gpu.stream_values import StreamValues
from magweld.passes.gpu.stream_warpgroups import Begun

Prepared = tuple[Any, Tile]
"""Operands of the left factor of the last product, and what it adds to."""


@dataclass(frozen=True)
class Carried:
    """What goes from one iteration to the next.

    Attributes:
        begun: The last product of the block before.
        kept: Tiles that the next one is made of.
        others: The other carried tensors, by their number.
    """

    begun: Sequence[Begun]
    kept: tuple[Held, ...]
    others: dict[int, Held]

    def flat(self) -> list[Any]:
        """Return all values, in one order."""
        found = [value for one in self.begun for value in one.flat()]
        for held in (*self.kept, *self.others.values()):
            found += held.values.values()
        return found

    def of(self, flat: Sequence[Any]) -> Carried:
        """Return the same with other values, in that order."""
        values = iter(flat)
        begun = [one.of(values) for one in self.begun]
        kept = tuple(_with(held, values) for held in self.kept)
        others = {n: _with(held, values) for n, held in self.others.items()}
        return Carried(begun, kept, others)


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
        sums = values.tiles[self._arguments[self._parts.number]]
        blocks.copy_first()
        blocks.wait_for_first()
        first = self._block(0, self._last.at_rest(sums), None)
        step = constant_index(self._size)
        made = scf.ForOp(step, constant_index(self._upper), step, first.flat())
        with ir.InsertionPoint(made.body):
            at = made.induction_variable
            prepared = self._prepared(first.of(list(made.inner_iter_args)))
            blocks.enter(at)
            scf.YieldOp(self._block(at, [], prepared).flat())
        end = first.of(list(made.results))
        prepared = self._prepared(end)
        blocks.enter(self._upper)
        sums = self._last.finish(self._begin_last(prepared, self._upper), 0)
        for number, held in end.others.items():
            values.tiles[op.results[number]] = held
        values.tiles[op.results[self._parts.number]] = sums
        blocks.leave()

    @property
    def _loop(self) -> scf.ForOp:
        return self._parts.stream.op

    def _block(
        self, at: Any, begun: Sequence[Begun], prepared: Prepared | None
    ) -> Carried:
        """Build the block at a position, beside the last product of that before.

        Args:
            at: The position.
            begun: Where there is none, what stands for it.
            prepared: The factors of that product.
        """
        kernel, parts = self._kernel, self._parts
        values = kernel.values
        place = constant_index(at) if isinstance(at, int) else at
        values.scalars[self._loop.induction_variable] = place
        likes = {n: values.tiles[self._arguments[n]] for n, _ in parts.others}
        for op in parts.early:
            if op != parts.first:
                kernel.build(op)
                continue
            product = kernel.product(op)
            left, start = kernel.factors(product)
            scores = product.begin(left, kernel.blocks.rings[0], at, start)
            if prepared is not None:
                begun = self._begin_last(prepared, at)
            younger = 0 if prepared is None else len(begun)
            values.tiles[op.results[0]] = product.finish(scores, younger)
        kept = tuple(values.held(value, value.type.shape) for value in parts.kept)
        others = {
            number: values.held(value, value.type.shape, _held(likes[number]))
            for number, value in parts.others
        }
        return Carried(begun, kept, others)

    def _prepared(self, before: Carried) -> Prepared:
        """Wait for the sums of a block, and build the factors of its successor's."""
        kernel, parts = self._kernel, self._parts
        tiles = kernel.values.tiles
        tiles.update((self._arguments[n], held) for n, held in before.others.items())
        tiles.update(zip(parts.kept, before.kept, strict=True))
        sums = self._last.finish(before.begun, 0)
        tiles[self._arguments[parts.number]] = sums
        for op in parts.late:
            kernel.build(op)
        return kernel.factors(self._last)

    def _begin_last(self, prepared: Prepared, at: Any) -> list[Begun]:
        """Build the last product of the block in front of a position."""
        size = self._size
        place = at - size if isinstance(at, int) else plus(at, -size)
        *_, ring = self._kernel.blocks.rings
        left, start = prepared
        return self._last.begin(left, ring, place, start)


def _held(tile: Tile) -> Held:
    assert isinstance(tile, Held), "what a loop carries is in registers"
    return tile
