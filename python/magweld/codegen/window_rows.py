"""Owns convolutions of images with few channels: products with rows of windows.

A tile is one result. Images are copied with the zeros around them, channels side by
side: then what a window reads of a row is one piece of memory, of a few vectors at
most. These are t[row of the window, part of the row, tile, element].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from llvmlite import ir

from magweld.codegen.emitter import FLOAT, POINTER, WORD, Emitter
from magweld.codegen.window_single import SingleKernels
from magweld.codegen.window_words import Place, WindowWords, Word

_ALIGNMENT: Final = 4


@dataclass(frozen=True)
class RowKernels(SingleKernels):
    """Defines the kernels."""

    name: ClassVar[str] = "rows"

    @cached_property
    def border(self) -> ir.Function:
        """(words, low, high): copies some rows of images with a border."""
        function, code = self.begin("border", POINTER, WORD, WORD)
        address, low, high = code.arguments
        words = WindowWords(code, address)
        pitch = code.product(words[Word.BORDERED_WIDE], words[Word.DEPTH])
        target = words.pointer(Word.BORDERED)
        with code.loop(low, high) as row:
            own = code.at(target, code.product(row, pitch))
            with code.loop(0, pitch) as number:
                _store(code, ir.Constant(FLOAT, 0.0), own, number)
            self._copy_row(code, words, row, own)
        # Vectors of the last row reach beyond its end.
        builder = code.builder
        rows = words[Word.BORDERED_ROWS]
        with builder.if_then(builder.icmp_unsigned("==", high, rows)):
            code.store(code.spread(0.0), target, code.product(rows, pitch))
        builder.ret_void()
        return function

    def _copy_row(
        self, code: Emitter, words: WindowWords, number: Any, own: Any
    ) -> None:
        """Emit the copy of a row of an image to its place within the zeros."""
        builder, depth = code.builder, words[Word.DEPTH]
        high, before = words[Word.BORDERED_HIGH], words[Word.PAD_WIDE]
        image = builder.udiv(number, high)
        row = builder.sub(builder.urem(number, high), words[Word.PAD_HIGH])
        room = builder.sub(words[Word.BORDERED_WIDE], before)
        # What is before the image is a large number without a sign.
        inside = builder.icmp_unsigned("<", row, words[Word.HIGH])
        with builder.if_then(inside):
            source = code.at(
                words.pointer(Word.IMAGE),
                code.product(image, words[Word.IMAGE_PITCH]),
                code.product(row, words[Word.ROW_PITCH]),
            )
            into = code.at(own, code.product(before, depth))
            with code.loop(0, depth) as channel:
                of = code.at(source, code.product(channel, words[Word.CHANNEL_PITCH]))
                with code.loop(0, code.least(words[Word.WIDE], room)) as column:
                    point = code.product(column, words[Word.POINT_PITCH])
                    value = _load(code, of, point)
                    place = code.sum(code.product(column, depth), channel)
                    _store(code, value, into, place)

    @cached_property
    def image(self) -> ir.Function:
        """(words, first, count, target): copies what some results read."""
        function, code = self.begin("image", POINTER, WORD, WORD, POINTER)
        address, first, count, target = code.arguments
        words = WindowWords(code, address)
        with words.rows(first, count) as (done, place, some):
            own = code.at(target, code.product(done, self.lanes))
            self._copy_windows(code, words, place, some, own)
        code.builder.ret_void()
        return function

    def _copy_windows(
        self, code: Emitter, words: WindowWords, place: Place, count: Any, own: Any
    ) -> None:
        """Emit the copy of what some results of a row read."""
        image, row, column = place
        depth, pitch = words[Word.DEPTH], words[Word.TILE_PITCH]
        parts, used = words[Word.PARTS], words[Word.USED]
        length = code.product(words[Word.BORDERED_WIDE], depth)
        first = code.product(image, words[Word.BORDERED_HIGH])
        top = code.sum(first, code.product(row, words[Word.STEP_HIGH]))
        step = code.product(words[Word.STEP_WIDE], depth)
        left = code.product(column, step)
        source = code.at(words.pointer(Word.BORDERED), code.product(top, length), left)
        below = code.product(words[Word.SPREAD_HIGH], length)
        with (
            code.loop(0, words[Word.WINDOW_HIGH]) as i,
            code.loop(0, parts) as part,
        ):
            of = code.at(source, code.product(i, below), code.product(part, used))
            block = code.sum(code.product(i, parts), part)
            into = code.at(own, code.product(block, pitch))
            with code.loop(0, count) as number:
                value = code.load(of, code.product(number, step))
                code.store(value, into, code.product(number, self.lanes))

    @cached_property
    def weights(self) -> ir.Function:
        """(words, block, target): copies the weights of a block of filters."""
        function, code = self.begin("weights", POINTER, WORD, POINTER)
        address, block, target = code.arguments
        words = WindowWords(code, address)
        length = code.product(words[Word.PARTS], words[Word.USED])
        first = code.product(block, self.filters)
        with code.loop(0, words[Word.WINDOW_HIGH]) as i:
            into = code.at(target, code.product(i, length, self.filters))
            with code.loop(0, length) as summand:
                self._copy_filters(
                    code,
                    words,
                    (first, i, summand),
                    code.at(into, code.product(summand, self.filters)),
                )
        code.builder.ret_void()
        return function

    def _copy_filters(
        self, code: Emitter, words: WindowWords, which: tuple[Any, Any, Any], into: Any
    ) -> None:
        """Emit the copy of a weight of all filters of a block, zeros behind a row."""
        first, i, summand = which
        builder = code.builder
        wide, depth = words[Word.WINDOW_WIDE], words[Word.DEPTH]
        points = code.product(words[Word.WINDOW_HIGH], wide)
        j, channel = builder.udiv(summand, depth), builder.urem(summand, depth)
        inside = builder.icmp_unsigned("<", summand, code.product(wide, depth))
        point = code.sum(code.product(channel, points), code.product(i, wide), j)
        place = builder.select(inside, point, code.word(0))
        size = code.product(depth, points)
        with code.loop(0, self.filters) as part:
            of = code.product(code.sum(first, part), size)
            value = _load(code, words.pointer(Word.WEIGHT), code.sum(of, place))
            zero = ir.Constant(FLOAT, 0.0)
            _store(code, builder.select(inside, value, zero), into, part)


def _load(code: Emitter, pointer: Any, offset: Any) -> Any:
    """Load a float."""
    return code.builder.load(code.at(pointer, offset), typ=FLOAT, align=_ALIGNMENT)


def _store(code: Emitter, value: Any, pointer: Any, offset: Any) -> None:
    """Store a float."""
    code.builder.store(value, code.at(pointer, offset), align=_ALIGNMENT)
