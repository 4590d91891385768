"""Owns what kernels of convolutions share: products of transformed tiles and weights.

Channels lie next to each other in images and results. All tiles of all images are
numbered, and a kernel takes some of them: none depends on a size. What tiles are
transformed to lies as t[p, c / lanes, tile, c % lanes], so that the tiles of a block
are at constant distances; weights as w[p, c, f] for some filters f, sums as
s[p, tile, f].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from llvmlite import ir

from magweld.codegen.emitter import FLOAT, POINTER, WORD, Emitter, define
from magweld.codegen.vector_kernels import VectorKernels
from magweld.codegen.window_transforms import transposed
from magweld.codegen.window_words import WindowWords, Word

# Tiles whose sums are in the first cache at a time.
CHUNK: Final = 24
# Whole blocks of tiles, whatever the CPU.
ROUND: Final = 24
# Blocks of summands, how many of each are used, and floats between blocks.
SUMMANDS: Final = (Word.BLOCKS, Word.USED, Word.TILE_PITCH)
# Vectors of filters, and tiles, of a block by the number of vector registers. They hold
# sums, and a vector of weights or two; AVX-512 multiplies by an element in memory.
_VECTORS: Final = {16: 2, 32: 1}
_BLOCKS: Final = {16: (6, 4, 2, 1), 32: (24, 16, 8, 4, 2, 1)}


def vectors_of(registers: int) -> int:
    """Return how many vectors of filters are computed together.

    Args:
        registers: How many vectors the CPU holds.
    """
    return _VECTORS[registers]


@dataclass(frozen=True)
class WindowKernels(VectorKernels, ABC):
    """Defines the kernels of one way to compute a convolution in a module.

    Attributes:
        name: What names of functions begin with.
        layers: Products of a tile for each channel and filter.
    """

    name: ClassVar[str]
    layers: ClassVar[int]

    @property
    def border(self) -> ir.Function | None:
        """(words, low, high): copies rows of images first, if something does."""
        return None

    @property
    @abstractmethod
    def image(self) -> ir.Function:
        """(words, first, count, target): transforms tiles of the image."""

    @property
    @abstractmethod
    def weights(self) -> ir.Function:
        """(words, block, target): transforms the weights of a block of filters."""

    @property
    @abstractmethod
    def chunk(self) -> ir.Function:
        """(words, tile, count, block, tiles, weights, sums): results of some tiles.

        There are at most `CHUNK` of them, from a tile on, for a block of filters.
        """

    @property
    def vectors(self) -> int:
        """Vectors of filters that are computed together."""
        return vectors_of(self.registers)

    @property
    def filters(self) -> int:
        """Filters that are computed together."""
        return self.vectors * self.lanes

    @property
    def sum_layer(self) -> int:
        """Floats between layers of sums, which begin in different sets of a cache."""
        return CHUNK * self.filters + self.lanes

    def begin(self, name: str, *types: Any) -> tuple[ir.Function, Emitter]:
        """Return a new function and what emits it."""
        function = define(self.module, f"{self.name}_{name}", *types)
        return function, Emitter(function, self.lanes)

    @contextmanager
    def turned_weights(
        self, code: Emitter, words: WindowWords, block: Any, points: Any, to: Any
    ) -> Iterator[tuple[Any, Any]]:
        """Emit loops over the vectors of a block of filters, and of their channels.

        The number of the first filter within the block, and of the first channel, are
        given; what is emitted with them finds the windows of both turned.

        Args:
            code: What emits the function.
            words: What the kernel is called with.
            block: The number of the block.
            points: How many points a window has.
            to: What `turn` copies to.
        """
        source, depth = words.pointer(Word.WEIGHT), words[Word.DEPTH]
        row = code.product(depth, points)
        first = code.product(block, self.filters)
        with code.loop(0, self.filters, self.lanes) as part:
            rows = code.at(source, code.product(code.sum(first, part), row))
            with code.loop(0, depth, self.lanes) as channel:
                of = code.at(rows, code.product(channel, points))
                self.turn(code, of, row, points, to)
                yield part, channel

    def turn(self, code: Emitter, source: Any, row: Any, points: Any, to: Any) -> None:
        """Emit a copy of windows in which those of a vector of filters are one.

        Args:
            code: Emits.
            source: The address of as many windows as a vector has lanes.
            row: Floats from one filter to the next.
            points: Of a window.
            to: The address of the copy, w[channel, point, filter].
        """
        with code.loop(0, code.product(points, self.lanes), self.lanes) as first:
            rows = [
                code.load(source, first, code.product(row, number))
                for number in range(self.lanes)
            ]
            into = code.at(to, code.product(first, self.lanes))
            for number, value in enumerate(transposed(code, rows)):
                code.store(value, into, number * self.lanes)

    @cached_property
    def products(self) -> dict[int, ir.Function]:
        """By their number of tiles, (tiles, weights, sums, blocks, used, pitch).

        Summands come in blocks, of which the first ones are used.
        """
        return {tiles: self._product(tiles) for tiles in _BLOCKS[self.registers]}

    def _product(self, tiles: int) -> ir.Function:
        name = f"product_{tiles}"
        known = self.module.globals.get(name)
        if known is not None:
            return known
        kinds = (POINTER, POINTER, POINTER, WORD, WORD, WORD)
        function = define(self.module, name, *kinds)
        code = Emitter(function, self.lanes)
        source, weights, target, *sizes = code.arguments
        sums = self.sums(code, tiles, (source, weights), sizes)
        for number, row in enumerate(sums):
            for half, value in enumerate(row):
                code.store(value, target, number * self.filters + half * self.lanes)
        code.builder.ret_void()
        return function

    def sums(
        self, code: Emitter, tiles: int, operands: Sequence[Any], sizes: Sequence[Any]
    ) -> list[list[Any]]:
        """Emit the products of some tiles; return their sums, for vectors of filters.

        Args:
            code: Emits.
            tiles: How many.
            operands: The addresses of transformed tiles and weights.
            sizes: Blocks of summands, those used of each, floats between blocks.
        """
        source, weights = operands
        blocks, used, pitch = sizes
        zero = code.spread(0.0)
        sums = [
            [code.variable(zero) for _ in range(self.vectors)] for _ in range(tiles)
        ]
        with code.loop(0, blocks) as block:
            of = code.at(source, code.product(block, pitch))
            summands = code.product(block, used)
            beside = code.at(weights, code.product(summands, self.filters))
            # Unrolled, it would have elements of all turns in registers.
            with code.loop(0, used) as inner:
                row = code.at(beside, code.product(inner, self.filters))
                self._add_products(code, sums, code.at(of, inner), row)
        return [
            [code.builder.load(one, typ=code.vector) for one in row] for row in sums
        ]

    def _add_products(
        self, code: Emitter, sums: Sequence[Any], of: Any, weights: Any
    ) -> None:
        """Emit the products with one channel."""
        row = [code.load(weights, half * self.lanes) for half in range(self.vectors)]
        for number, pair in enumerate(sums):
            point = code.at(of, number * self.lanes)
            value = code.spread(code.builder.load(point, typ=FLOAT, align=4))
            for one, weight in zip(pair, row, strict=True):
                before = code.builder.load(one, typ=code.vector)
                code.builder.store(code.fma(value, weight, before), one)

    def in_blocks(
        self,
        code: Emitter,
        count: Any,
        products: Mapping[int, ir.Function],
        multiply: Callable[[ir.Function, Any], None],
    ) -> None:
        """Emit calls for all tiles, whole blocks of the most tiles first.

        Args:
            code: Emits.
            count: How many tiles there are.
            products: Functions by their number of tiles.
            multiply: Emits the call of one, from a tile on.
        """
        done: Any = code.word(0)
        for tiles, product in products.items():
            left = code.builder.sub(count, done)
            whole = code.builder.udiv(left, code.word(tiles))
            end = code.sum(done, code.product(whole, tiles))
            with code.loop(done, end, tiles) as number:
                multiply(product, number)
            done = end
