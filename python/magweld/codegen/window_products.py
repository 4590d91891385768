"""Owns convolutions by sums of products, with windows and steps of any size.

A tile is one result. What it reads is copied point by point: t[point, channel].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from llvmlite import ir

from magweld.codegen.emitter import POINTER, WORD, Emitter
from magweld.codegen.window_single import SingleKernels
from magweld.codegen.window_words import Place, WindowWords, Word

# Points of a window, at most: their weights are turned in memory of 25 KiB.
MOST_POINTS: Final = 25


@dataclass(frozen=True)
class ProductKernels(SingleKernels):
    """Defines the kernels."""

    name: ClassVar[str] = "products"

    @cached_property
    def image(self) -> ir.Function:
        """(words, first, count, target): copies what some results read."""
        function, code = self.begin("image", POINTER, WORD, WORD, POINTER)
        address, first, count, target = code.arguments
        words = WindowWords(code, address)
        with words.tiles(first, count) as (number, place):
            own = code.at(target, code.product(number, self.lanes))
            self._copy_window(code, words, place, own)
        code.builder.ret_void()
        return function

    def _copy_window(
        self, code: Emitter, words: WindowWords, place: Place, own: Any
    ) -> None:
        image, row, column = place
        depth, pitch = words[Word.DEPTH], words[Word.TILE_PITCH]
        blocks = code.builder.udiv(depth, code.word(self.lanes))
        wide = words[Word.WINDOW_WIDE]
        top = code.builder.sub(
            code.product(row, words[Word.STEP_HIGH]), words[Word.PAD_HIGH]
        )
        left = code.builder.sub(
            code.product(column, words[Word.STEP_WIDE]), words[Word.PAD_WIDE]
        )
        with code.loop(0, words[Word.WINDOW_HIGH]) as i:
            y = code.sum(top, code.product(i, words[Word.SPREAD_HIGH]))
            with code.loop(0, wide) as j:
                x = code.sum(left, code.product(j, words[Word.SPREAD_WIDE]))
                source = words.point(image, y, x)
                point = code.sum(code.product(i, wide), j)
                into = code.at(own, code.product(point, blocks, pitch))
                with code.loop(0, blocks) as block:
                    value = code.load(source, code.product(block, self.lanes))
                    code.store(value, into, code.product(block, pitch))

    @cached_property
    def weights(self) -> ir.Function:
        """(words, block, target): copies the weights of a block of filters."""
        function, code = self.begin("weights", POINTER, WORD, POINTER)
        address, block, target = code.arguments
        words = WindowWords(code, address)
        depth = words[Word.DEPTH]
        points = code.product(words[Word.WINDOW_HIGH], words[Word.WINDOW_WIDE])
        turned = code.room(MOST_POINTS * self.lanes**2)
        with (
            self.turned_weights(code, words, block, points, turned) as (part, channel),
            code.loop(0, points) as point,
        ):
            place = code.sum(code.product(point, depth), channel)
            into = code.at(target, code.product(place, self.filters), part)
            self._copy_point(code, turned, (points, point), into)
        code.builder.ret_void()
        return function

    def _copy_point(
        self, code: Emitter, turned: Any, at: tuple[Any, Any], into: Any
    ) -> None:
        points, point = at
        for inner in range(self.lanes):
            place = code.sum(code.product(points, inner), point)
            value = code.load(turned, code.product(place, self.lanes))
            code.store(value, into, inner * self.filters)
