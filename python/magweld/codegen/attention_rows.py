"""Owns what becomes of a row of scores: exponentials, their sum, and their factor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llvmlite import ir

from magweld.codegen.activations import exp
from magweld.codegen.emitter import FLOAT, POINTER, WORD, Emitter, define
from magweld.codegen.masked_loads import load_some


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
        """(scores, mask, limit, vectors, highest, total, sums, size).

        Scores become exponentials of what they are above the highest score so far, zero
        from the limit on and where they are minus infinity. The mask is added before,
        unless its address is 0. A new highest score scales the total and the sums of
        values, of `size` floats. Each lane of the total has a part of it.
        """
        kinds = (POINTER, POINTER, WORD, WORD, *[POINTER] * 3, WORD)
        function = define(self.module, "attention_weigh", *kinds)
        code = Emitter(function, self.lanes)
        scores, mask, limit, vectors, highest, total, sums, size = code.arguments
        old = code.load(highest, 0)
        best = self._masked(code, (scores, mask), (limit, vectors), old)
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
        addresses: tuple[Any, Any],
        numbers: tuple[Any, Any],
        old: Any,
    ) -> Any:
        """Emit the mask and return the highest score, in all lanes.

        Args:
            code: Emits.
            addresses: Of scores and their mask.
            numbers: The limit and vectors.
            old: The highest score before.
        """
        builder = code.builder
        scores, mask = addresses
        limit, vectors = numbers
        has_mask = _is_given(code, mask)
        best = code.variable(old)

        def note(value: Any) -> None:
            known = builder.load(best, typ=code.vector)
            builder.store(_higher(code, known, value), best)

        # All lanes of these are before the limit. Scores without a mask stay as they
        # are: they are read again at once, which waits for a store of some lanes.
        shown = builder.sdiv(code.most(limit, 0), code.word(self.lanes))
        shown = code.least(shown, vectors)
        with builder.if_else(has_mask) as (masked, plain):
            with masked, code.loop(0, shown) as number:
                place = code.product(number, self.lanes)
                added = code.load(mask, place)
                value = builder.fadd(code.load(scores, place), added)
                code.store(value, scores, place)
                note(value)
            with plain, code.loop(0, shown) as number:
                note(code.load(scores, code.product(number, self.lanes)))
        with code.loop(shown, vectors) as number:
            place = code.product(number, self.lanes)
            is_seen = code.lanes_before(builder.sub(limit, place))
            value = code.variable(code.load(scores, place))
            with builder.if_then(has_mask):
                added = load_some(code, code.at(mask, place), is_seen, FLOAT)
                one = builder.load(value, typ=code.vector)
                builder.store(builder.fadd(one, added), value)
            one = builder.load(value, typ=code.vector)
            one = builder.select(is_seen, one, code.spread(-math.inf))
            code.store(one, scores, place)
            note(one)
        found = builder.load(best, typ=code.vector)
        return code.across(found, lambda one, other: _higher(code, one, other))


def _is_given(code: Emitter, address: Any) -> Any:
    """Return whether an address is not 0."""
    number = code.builder.ptrtoint(address, WORD)
    return code.builder.icmp_unsigned("!=", number, code.word(0))


def _higher(code: Emitter, one: Any, other: Any) -> Any:
    builder = code.builder
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)
