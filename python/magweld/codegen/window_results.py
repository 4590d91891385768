"""Owns what follows the sums of a convolution, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from llvmlite import ir

from magweld.codegen.emitter import FLOAT, INT, Emitter
from magweld.codegen.window_words import WindowWords, Word

# Chains of sums that note numbers.
_CHAINS: Final = 4


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
        before = code.builder.load(self.found, typ=code.vector)
        # Sums of several chains, which do not wait for each other.
        found = [before, *[zero] * min(_CHAINS - 1, len(values) // _CHAINS)]
        for number, value in enumerate(values):
            chain = number % len(found)
            # It stays zero for finite numbers.
            found[chain] = code.fma(value, zero, found[chain])
        total, *others = found
        for other in others:
            total = code.builder.fadd(total, other)
        code.builder.store(total, self.found)

    def end(self) -> None:
        """Emit that the call is told of what was noted."""
        code = self.code
        found = code.builder.load(self.found, typ=code.vector)
        lanes = code.builder.fcmp_unordered("uno", found, found)
        bits = code.builder.bitcast(lanes, ir.IntType(code.lanes))
        is_any = code.builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
        with code.builder.if_then(is_any, likely=False):
            code.builder.store(code.word(0), self.words.slot(Word.IS_FINITE))

    def store(self, pixel: Any, rows: Sequence[Sequence[Any]]) -> None:
        """Emit what is made of the sums at pixels in a row, and the stores.

        Args:
            pixel: The number of the first one among those of all results.
            rows: For each pixel a vector of sums for each vector of filters.
        """
        code, builder, words = self.code, self.code.builder, self.words
        filters = words[Word.FILTERS]
        made: list[tuple[Any, Any]] = []
        for number, values in enumerate(rows):
            place = code.product(code.sum(pixel, number), filters)
            given = zip(values, self.scales, self.shifts, strict=True)
            for part, (value, scale, shift) in enumerate(given):
                at = code.sum(place, self.filters, part * code.lanes)
                made.append((code.variable(code.fma(value, scale, shift)), at))
        with builder.if_then(words.is_set(Word.BESIDE)):
            for held, at in made:
                other = code.load(words.pointer(Word.BESIDE), at)
                value = builder.load(held, typ=code.vector)
                builder.store(builder.fadd(value, other), held)
        for held, at in made:
            total = builder.load(held, typ=code.vector)
            is_less = builder.fcmp_ordered("<", total, self.least)
            chosen = builder.select(is_less, self.least, total)
            code.store(chosen, words.pointer(Word.RESULT), at)


def emit_terms(code: Emitter, words: WindowWords) -> None:
    """Emit what makes factors and terms of the results, and a row of zeros."""
    with code.loop(0, words[Word.FILTERS], code.lanes) as first:
        scale, shift = (code.variable(code.spread(one)) for one in (1.0, 0.0))
        _if_given(code, words, Word.BIAS, first, shift, lambda value, _: value)
        with code.builder.if_then(words.is_set(Word.VARIANCE)):
            _emit_norm(code, words, first, (scale, shift))
        for word, held in ((Word.SCALE, scale), (Word.SHIFT, shift)):
            value = code.builder.load(held, typ=code.vector)
            code.store(value, words.pointer(word), first)
    with code.loop(0, words[Word.DEPTH]) as channel:
        place = code.at(words.pointer(Word.ZEROS), channel)
        code.builder.store(ir.Constant(FLOAT, 0.0), place, align=4)


def _emit_norm(
    code: Emitter, words: WindowWords, first: Any, held: tuple[Any, Any]
) -> None:
    """Emit that of a norm by given statistics; held are its factor, and the bias."""
    builder = code.builder
    scale, shift = held
    bits = builder.trunc(words[Word.EPSILON], INT)
    epsilon = code.spread(builder.bitcast(bits, FLOAT))
    variance = code.load(words.pointer(Word.VARIANCE), first)
    deviation = code.root(builder.fadd(variance, epsilon))
    builder.store(builder.fdiv(code.spread(1.0), deviation), scale)
    _if_given(code, words, Word.FACTORS, first, scale, builder.fmul)
    mean = code.load(words.pointer(Word.MEAN), first)
    factor = builder.load(scale, typ=code.vector)
    bias = builder.load(shift, typ=code.vector)
    builder.store(builder.fmul(builder.fsub(bias, mean), factor), shift)
    _if_given(code, words, Word.ADDED, first, shift, builder.fadd)


def _if_given(
    code: Emitter,
    words: WindowWords,
    word: Word,
    first: Any,
    held: Any,
    combine: Callable[[Any, Any], Any],
) -> None:
    """Emit that a variable takes in what a tensor has, if there is one."""
    with code.builder.if_then(words.is_set(word)):
        value = code.load(words.pointer(word), first)
        before = code.builder.load(held, typ=code.vector)
        code.builder.store(combine(value, before), held)
