"""Owns convolutions of 3 x 3 at every point by minimal filtering: tiles of 2 x 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

from llvmlite import ir

from magweld.codegen.emitter import POINTER, WORD, Emitter
from magweld.codegen.minimal_filtering import (
    INPUT,
    PRODUCTS,
    RESULT,
    SIDE,
    TILE,
    WEIGHT,
    WINDOW,
)
from magweld.codegen.window_kernels import SUMMANDS, WindowKernels
from magweld.codegen.window_results import Results
from magweld.codegen.window_transforms import Grid, transformed
from magweld.codegen.window_words import Place, WindowWords, Word


@dataclass(frozen=True)
class FilteringKernels(WindowKernels):
    """Defines the kernels: 16 products for four results instead of 36."""

    name: ClassVar[str] = "filtering"
    layers: ClassVar[int] = PRODUCTS

    @cached_property
    def image(self) -> ir.Function:
        """(words, first, count, target): transforms tiles of the image."""
        function, code = self.begin("image", POINTER, WORD, WORD, POINTER)
        address, first, count, target = code.arguments
        words = WindowWords(code, address)
        depth, pitch = words[Word.DEPTH], words[Word.TILE_PITCH]
        layer = words[Word.TILE_LAYER]
        with words.tiles(first, count) as (number, place):
            points = _points(code, words, place)
            own = code.at(target, code.product(number, self.lanes))
            with code.loop(0, depth, self.lanes) as channel:
                block = code.builder.udiv(channel, code.word(self.lanes))
                into = code.at(own, code.product(block, pitch))
                grid = [[code.load(point, channel) for point in row] for row in points]
                _store(code, transformed(code, INPUT, grid), into, layer)
        code.builder.ret_void()
        return function

    @cached_property
    def weights(self) -> ir.Function:
        """(words, block, target): transforms the weights of a block of filters."""
        function, code = self.begin("weights", POINTER, WORD, POINTER)
        address, block, target = code.arguments
        words = WindowWords(code, address)
        layer, points = words[Word.WEIGHT_LAYER], WINDOW * WINDOW
        turned = code.room(points * self.lanes**2)
        with (
            self.turned_weights(code, words, block, points, turned) as (part, channel),
            code.loop(0, self.lanes) as inner,
        ):
            grid = self._window(code, turned, inner)
            where = code.product(code.sum(channel, inner), self.filters)
            into = code.at(target, where, part)
            _store(code, transformed(code, WEIGHT, grid), into, layer)
        code.builder.ret_void()
        return function

    def _window(self, code: Emitter, turned: Any, channel: Any) -> Grid:
        place = code.product(channel, WINDOW * WINDOW * self.lanes)
        window = code.at(turned, place)
        return [
            [code.load(window, (WINDOW * i + j) * self.lanes) for j in range(WINDOW)]
            for i in range(WINDOW)
        ]

    @cached_property
    def results(self) -> ir.Function:
        """(words, tile, count, block, sums): makes the results of tiles of sums."""
        kinds = (POINTER, WORD, WORD, WORD, POINTER)
        function, code = self.begin("results", *kinds)
        address, first, count, block, sums = code.arguments
        words = WindowWords(code, address)
        filters = code.product(block, self.filters)
        results = Results.begin(code, words, filters, self.vectors)
        with words.tiles(first, count) as (number, place):
            own = code.at(sums, code.product(number, self.filters))
            self._emit_results(results, place, own)
        results.end()
        code.builder.ret_void()
        return function

    @cached_property
    def chunk(self) -> ir.Function:
        """(words, tile, count, block, tiles, weights, sums): results of some tiles."""
        kinds = (POINTER, WORD, WORD, WORD, POINTER, POINTER, POINTER)
        function, code = self.begin("chunk", *kinds)
        address, tile, count, block, tiles, weights, sums = code.arguments
        words = WindowWords(code, address)
        sizes = [words[one] for one in SUMMANDS]
        tile_layer, weight_layer = words[Word.TILE_LAYER], words[Word.WEIGHT_LAYER]
        with code.loop(0, self.layers) as p:
            source = code.at(tiles, code.product(p, tile_layer))
            beside = code.at(weights, code.product(p, weight_layer))
            into = code.at(sums, code.product(p, self.sum_layer))

            def multiply(product: ir.Function, number: Any) -> None:
                own = code.at(source, code.product(number, self.lanes))
                out = code.at(into, code.product(number, self.filters))
                code.builder.call(product, [own, beside, out, *sizes])

            self.in_blocks(code, count, self.products, multiply)
        code.builder.call(self.results, [address, tile, count, block, sums])
        code.builder.ret_void()
        return function

    def _emit_results(self, results: Results, place: Place, sums: Any) -> None:
        """Emit the transforms of the sums of a tile, and what follows them."""
        code = results.code
        found = [self._load_sums(code, sums, p) for p in range(PRODUCTS)]
        parts = []
        for half in range(self.vectors):
            values = [pair[half] for pair in found]
            grid = [values[SIDE * i : SIDE * (i + 1)] for i in range(SIDE)]
            parts.append(transformed(code, RESULT, grid))
        results.note_numbers([v for part in parts for row in part for v in row])
        for i, j, pixel in _pixels(code, results.words, place):
            results.store(pixel, [[part[i][j] for part in parts]])

    def _load_sums(self, code: Emitter, sums: Any, layer: int) -> list[Any]:
        """Load the sums of a tile and a layer, for each vector of filters."""
        first = layer * self.sum_layer
        return [code.load(sums, first + n * self.lanes) for n in range(self.vectors)]


def _store(code: Emitter, grid: Grid, into: Any, layer: Any) -> None:
    for p, value in enumerate(chain.from_iterable(grid)):
        code.store(value, into, code.product(layer, p))


def _points(code: Emitter, words: WindowWords, place: Place) -> Grid:
    """Return the addresses of the points that a tile reads."""
    image, row, column = place
    top = code.builder.sub(code.product(row, TILE), words[Word.PAD_HIGH])
    left = code.builder.sub(code.product(column, TILE), words[Word.PAD_WIDE])
    return [
        [words.point(image, code.sum(top, i), code.sum(left, j)) for j in range(SIDE)]
        for i in range(SIDE)
    ]


def _pixels(
    code: Emitter, words: WindowWords, place: Place
) -> Iterator[tuple[int, int, Any]]:
    """Emit code around what is done with each result that is inside the image."""
    builder = code.builder
    image, row, column = place
    high, wide = words[Word.RESULT_HIGH], words[Word.RESULT_WIDE]
    first = code.product(image, high)
    for i in range(TILE):
        for j in range(TILE):
            y = code.sum(code.product(row, TILE), i)
            x = code.sum(code.product(column, TILE), j)
            is_row = builder.icmp_unsigned("<", y, high)
            is_column = builder.icmp_unsigned("<", x, wide)
            with builder.if_then(builder.and_(is_row, is_column)):
                yield i, j, code.sum(code.product(code.sum(first, y), wide), x)
