"""Owns the largest elements of windows of images, channels side by side."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Final

from magweld.codegen.emitter import Emitter
from magweld.codegen.shared_ranges import SharedRanges
from magweld.codegen.vector_kernels import VectorKernels
from magweld.codegen.window_words import WindowWords, Word

SYMBOL: Final = "magweld_maxima"


@dataclass(frozen=True)
class MaximaKernels(VectorKernels):
    """Defines the kernel; threads share out the rows of all results."""

    def define(self) -> None:
        """Define the function that runs it by its words, and what it calls."""
        shared = SharedRanges(self.module, self.lanes, "maxima")
        region = shared.region("maxima", self._emit_rows, Word.FIRST_TOTAL)
        shared.entry(SYMBOL, [region], Word.THREADS)

    def _emit_rows(
        self, code: Emitter, address: Any, own: tuple[Any, Any, Any]
    ) -> None:
        _, low, high = own
        words = WindowWords(code, address)
        wide, depth = words[Word.RESULT_WIDE], words[Word.DEPTH]
        builder = code.builder
        with code.loop(low, high) as number:
            rows = words[Word.RESULT_HIGH]
            image, row = builder.udiv(number, rows), builder.urem(number, rows)
            into = code.at(
                words.pointer(Word.RESULT), code.product(number, wide, depth)
            )
            with code.loop(0, wide) as column:
                of = code.at(into, code.product(column, depth))
                with code.loop(0, depth, self.lanes) as channel:
                    place = (image, row, column, channel)
                    code.store(self._largest(code, words, place), of, channel)

    def _largest(
        self, code: Emitter, words: WindowWords, place: tuple[Any, Any, Any, Any]
    ) -> Any:
        """Return the largest of some channels in a window, no number if one is none."""
        image, row, column, channel = place
        builder = code.builder
        found = code.variable(code.spread(-inf))
        top, left = (
            builder.sub(code.product(place, words[step]), words[pad])
            for place, step, pad in (
                (row, Word.STEP_HIGH, Word.PAD_HIGH),
                (column, Word.STEP_WIDE, Word.PAD_WIDE),
            )
        )
        source = code.at(words.pointer(Word.IMAGE), channel)
        first = code.product(image, words[Word.HIGH])
        with code.loop(0, words[Word.WINDOW_HIGH]) as i:
            y = code.sum(top, code.product(i, words[Word.SPREAD_HIGH]))
            # What is before the image is a large number without a sign.
            inside = builder.icmp_unsigned("<", y, words[Word.HIGH])
            with builder.if_then(inside):
                points = code.product(code.sum(first, y), words[Word.WIDE])
                with code.loop(0, words[Word.WINDOW_WIDE]) as j:
                    x = code.sum(left, code.product(j, words[Word.SPREAD_WIDE]))
                    inside = builder.icmp_unsigned("<", x, words[Word.WIDE])
                    with builder.if_then(inside):
                        point = code.product(code.sum(points, x), words[Word.DEPTH])
                        self._note(code, found, code.load(source, point))
        return builder.load(found, typ=code.vector)

    def _note(self, code: Emitter, found: Any, value: Any) -> None:
        builder = code.builder
        before = builder.load(found, typ=code.vector)
        is_larger = builder.fcmp_ordered(">", value, before)
        is_none = builder.fcmp_unordered("uno", value, value)
        is_taken = builder.or_(is_larger, is_none)
        builder.store(builder.select(is_taken, value, before), found)
