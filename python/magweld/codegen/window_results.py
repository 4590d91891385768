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
        scales: Factors of the results, a vector for each vector of filters.
        shifts: What is added to them.
        least: What results are at least, in each lane.
        found: Where it is noted that sums were no finite numbers.
    """

    code: Emitter
    words: WindowWords
    filters: Any
    scales: Sequence[Any]
    shifts: Sequence[Any]
    least: Any
    found: Any

    @staticmethod
    def begin(code: Emitter, words: WindowWords, filters: Any, vectors: int) -> Results:
        """Emit the loads of what all results of some filters have in common.

        Args:
            code: Emits.
            words: Of the call.
            filters: The first filter.
            vectors: How many vectors of filters.
        """
        scales, shifts = (
            [
                code.load(words.pointer(word), filters, number * code.lanes)
                for number in range(vectors)
            ]
            for word in (Word.SCALE, Word.SHIFT)
        )
        zero, none = code.spread(0.0), code.spread(-inf)
        least = code.builder.select(words.is_set(Word.RECTIFIED), zero, none)
        found = code.variable(zero)
        return Results(code, words, filters, scales, shifts, least, found)

    def note_numbers(self, values: Sequence[Any]) -> None:
        """Emit the note that some values are no finite numbers."""
        code = self.code
        zero = code.spread(0.0)
        found = code.builder.load(self.found, typ=code.vector)
        for value in values:
            found = code.fma(value, zero, found)  # it stays zero for finite numbers
        code.builder.store(found, self.found)

    def end(self) -> None:
        """Emit that the call is told of what was noted."""
        code = self.code
        found = code.builder.load(self.found, typ=code.vector)
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
        given = zip(values, self.scales, self.shifts, strict=True)
        for number, (value, scale, shift) in enumerate(given):
            at = code.sum(place, number * code.lanes)
            self._store_one(code.fma(value, scale, shift), at)

    def _store_one(self, value: Any, place: Any) -> None:
        code, builder, words = self.code, self.code.builder, self.words
        result = code.variable(value)
        with builder.if_then(words.is_set(Word.BESIDE)):
            other = code.load(words.pointer(Word.BESIDE), place)
            builder.store(builder.fadd(value, other), result)
        total = builder.load(result, typ=code.vector)
        is_less = builder.fcmp_ordered("<", total, self.least)
        chosen = builder.select(is_less, self.least, total)
        code.store(chosen, words.pointer(Word.RESULT), place)
