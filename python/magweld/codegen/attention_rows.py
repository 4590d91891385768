"""Owns what becomes of a row of scores: exponentials, their sum, and their factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llvmlite import ir

from magweld.codegen.activations import exp
from magweld.codegen.emitter import (
    BYTE,
    FLOAT,
    INT,
    POINTER,
    WORD,
    Emitter,
    define,
)

_BIT = ir.IntType(1)


@dataclass(frozen=True)
class AttentionRows:
    """Defines the function in a module.

    Attributes:
        module: The module.
        lanes: Floats of a vector.
    """

    module: ir.Module
    lanes: int

    @cached_property
    def weigh(self) -> ir.Function:
        """(scores, mask, seen, unseen, limit, vectors, highest, total, sums, size).

        Scores become exponentials of what they are above the highest score so far, zero
        from the limit on and where they are minus infinity. The mask is added before,
        unless its address is 0; it has bytes that choose one of two floats if `seen` is
        not 0. A new highest score scales the total and the sums of values, of `size`
        floats. Each lane of the total has a part of it.
        """
        kinds = (*[POINTER] * 4, WORD, WORD, *[POINTER] * 3, WORD)
        function = define(self.module, "attention_weigh", *kinds)
        code = Emitter(function, self.lanes)
        scores, *masks, limit, vectors, highest, total, sums, size = code.arguments
        old = code.load(highest, 0)
        best = self._masked(code, (scores, *masks), (limit, vectors), old)
        code.store(best, highest, 0)
        lowest = code.spread(-math.inf)
        builder = code.builder
        is_none = builder.fcmp_ordered("==", best, lowest)
        above = builder.select(is_none, code.spread(0.0), best)
        scale = exp(code, builder.fsub(old, above))
        sum_ = code.variable(builder.fmul(code.load(total, 0), scale))
        with code.loop(0, vectors) as number:
            place = code.product(number, self.lanes)
            value = code.load(scores, place)
            is_hidden = builder.fcmp_ordered("==", value, lowest)
            power = exp(code, builder.fsub(value, above))
            power = builder.select(is_hidden, code.spread(0.0), power)
            code.store(power, scores, place)
            before = builder.load(sum_, typ=code.vector)
            builder.store(builder.fadd(before, power), sum_)
        code.store(builder.load(sum_, typ=code.vector), total, 0)
        with code.loop(0, size, self.lanes) as start:
            code.store(builder.fmul(code.load(sums, start), scale), sums, start)
        builder.ret_void()
        return function

    def _masked(
        self,
        code: Emitter,
        addresses: tuple[Any, ...],
        numbers: tuple[Any, Any],
        old: Any,
    ) -> Any:
        """Emit the mask and return the highest score, in all lanes.

        Args:
            code: Emits.
            addresses: Of scores, their mask, and the floats that its bytes choose from.
            numbers: The limit and vectors.
            old: The highest score before.
        """
        builder = code.builder
        scores, *masks = addresses
        limit, vectors = numbers
        has_mask = _is_given(code, masks[0])
        best = code.variable(old)
        with code.loop(0, vectors) as number:
            place = code.product(number, self.lanes)
            is_seen = self._before(code, builder.sub(limit, place))
            value = code.variable(code.load(scores, place))
            with builder.if_then(has_mask):
                added = self._added(code, masks, place, is_seen)
                one = builder.load(value, typ=code.vector)
                builder.store(builder.fadd(one, added), value)
            one = builder.load(value, typ=code.vector)
            one = builder.select(is_seen, one, code.spread(-math.inf))
            code.store(one, scores, place)
            builder.store(_higher(code, builder.load(best, typ=code.vector), one), best)
        found = builder.load(best, typ=code.vector)
        return code.across(found, lambda one, other: _higher(code, one, other))

    def _added(
        self, code: Emitter, masks: Sequence[Any], place: Any, is_seen: Any
    ) -> Any:
        """Emit what a mask adds to a vector of scores.

        Args:
            code: Emits.
            masks: Addresses of the mask, and of the floats that its bytes choose from.
            place: The first score.
            is_seen: The lanes that are there.
        """
        builder = code.builder
        mask, *choices = masks
        found = code.variable(code.spread(0.0))
        with builder.if_else(_is_given(code, choices[0])) as (by_bytes, by_floats):
            with by_bytes:
                address = builder.gep(mask, [place], source_etype=BYTE)
                read = self._load_some(code, address, is_seen, BYTE)
                is_set = builder.icmp_unsigned("!=", read, ir.Constant(read.type, None))
                seen, unseen = (
                    code.spread(builder.load(one, typ=FLOAT, align=4))
                    for one in choices
                )
                builder.store(builder.select(is_set, seen, unseen), found)
            with by_floats:
                read = self._load_some(code, code.at(mask, place), is_seen, FLOAT)
                builder.store(read, found)
        return builder.load(found, typ=code.vector)

    def _before(self, code: Emitter, limit: Any) -> Any:
        """Return which lanes are before a number."""
        builder = code.builder
        words = ir.VectorType(INT, self.lanes)
        first = builder.insert_element(
            ir.Constant(words, ir.Undefined),
            builder.trunc(limit, INT),
            ir.Constant(INT, 0),
        )
        limits = code.shuffle(first, first, [0] * self.lanes)
        numbers = ir.Constant(words, list(range(self.lanes)))
        return builder.icmp_signed("<", numbers, limits)

    def _load_some(
        self, code: Emitter, address: Any, is_loaded: Any, kind: ir.Type
    ) -> Any:
        """Load some lanes; others are zero, and their memory is not read."""
        vector = ir.VectorType(kind, self.lanes)
        size, letters = (4, "f32") if kind is FLOAT else (1, "i8")
        name = f"llvm.masked.load.v{self.lanes}{letters}.p0"
        function = self.module.globals.get(name)
        if function is None:
            lanes = ir.VectorType(_BIT, self.lanes)
            given = [POINTER, INT, lanes, vector]
            function = ir.Function(self.module, ir.FunctionType(vector, given), name)
        alignment = ir.Constant(INT, size)
        arguments = [address, alignment, is_loaded, ir.Constant(vector, None)]
        return code.builder.call(function, arguments)


def _is_given(code: Emitter, address: Any) -> Any:
    """Return whether an address is not 0."""
    number = code.builder.ptrtoint(address, WORD)
    return code.builder.icmp_unsigned("!=", number, code.word(0))


def _higher(code: Emitter, one: Any, other: Any) -> Any:
    builder = code.builder
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)
