"""Owns what follows the sums of a convolution, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from llvmlite import ir

from magweld.codegen.emitter import Emitter
from magweld.codegen.window_words import WindowWords, Word


@dataclass(frozen=True)
class Results:
    """Emits the results of some vectors of filters, from one filter on.

    Attributes:
        code: Emits.
        words: Of the call.
        filters: The first filter.
        vectors: How many vectors.
    """

    code: Emitter
    words: WindowWords
    filters: Any
    vectors: int

    def note_numbers(self, values: Sequence[Any]) -> None:
        """Emit the note that some values are no finite numbers."""
        code = self.code
        zero = code.spread(0.0)
        found = zero
        for value in values:
            found = code.fma(value, zero, found)  # it stays zero for finite numbers
        lanes = code.builder.fcmp_unordered("uno", found, found)
        bits = code.builder.bitcast(lanes, ir.IntType(code.lanes))
        is_any = code.builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
        with code.builder.if_then(is_any, likely=False):
            code.builder.store(code.word(0), self.words.slot(Word.IS_FINITE))

    def store(self, pixel: Any, values: Sequence[Any]) -> None:
        """Emit what is made of the sums at a pixel, and the stores.

        Args:
            pixel: The number of the pixel among those of all results.
            values: A vector of sums for each vector of filters.
        """
        code, words = self.code, self.words
        place = code.sum(code.product(pixel, words[Word.FILTERS]), self.filters)
        for number, value in enumerate(values):
            first = number * code.lanes
            scale, shift = (
                code.load(words.pointer(word), self.filters, first)
                for word in (Word.SCALE, Word.SHIFT)
            )
            self._store_one(code.fma(value, scale, shift), code.sum(place, first))

    def _store_one(self, value: Any, place: Any) -> None:
        code, builder, words = self.code, self.code.builder, self.words
        result = code.variable(value)
        with builder.if_then(words.is_set(Word.BESIDE)):
            other = code.load(words.pointer(Word.BESIDE), place)
            builder.store(builder.fadd(value, other), result)
        total = builder.load(result, typ=code.vector)
        least = self._least()
        chosen = builder.select(builder.fcmp_ordered("<", total, least), least, total)
        code.store(chosen, words.pointer(Word.RESULT), place)

    def _least(self) -> Any:
        is_rectified = self.words.is_set(Word.RECTIFIED)
        zero, none = self.code.spread(0.0), self.code.spread(-inf)
        return self.code.builder.select(is_rectified, zero, none)
