"""Owns what becomes of a row of scores: exponentials, their sum, and their factor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llvmlite import ir

from magweld.codegen.activations import exp
from magweld.codegen.emitter import INT, POINTER, WORD, Emitter, define

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
        """(scores, mask, limit, vectors, highest, total, sums, size).

        Scores become exponentials of what they are above the highest score so far, zero
        from the limit on and where they are minus infinity. The mask is added before,
        unless its address is 0. A new highest score scales the total and the sums of
        values, of `size` floats. Each lane of the total has a part of it.
        """
        kinds = (POINTER, POINTER, WORD, WORD, POINTER, POINTER, POINTER, WORD)
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
        zero = code.word(0)
        has_mask = builder.icmp_unsigned("!=", builder.ptrtoint(mask, WORD), zero)
        best = code.variable(old)
        with code.loop(0, vectors) as number:
            place = code.product(number, self.lanes)
            is_seen = self._before(code, builder.sub(limit, place))
            value = code.variable(code.load(scores, place))
            with builder.if_then(has_mask):
                added = self._load_some(code, code.at(mask, place), is_seen)
                one = builder.load(value, typ=code.vector)
                builder.store(builder.fadd(one, added), value)
            one = builder.load(value, typ=code.vector)
            one = builder.select(is_seen, one, code.spread(-math.inf))
            code.store(one, scores, place)
            builder.store(_higher(code, builder.load(best, typ=code.vector), one), best)
        found = builder.load(best, typ=code.vector)
        return code.across(found, lambda one, other: _higher(code, one, other))

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

    def _load_some(self, code: Emitter, address: Any, is_loaded: Any) -> Any:
        """Load some lanes; others are zero, and their memory is not read."""
        name = f"llvm.masked.load.v{self.lanes}f32.p0"
        function = self.module.globals.get(name)
        if function is None:
            lanes = ir.VectorType(_BIT, self.lanes)
            given = [POINTER, INT, lanes, code.vector]
            kind = ir.FunctionType(code.vector, given)
            function = ir.Function(self.module, kind, name)
        alignment = ir.Constant(INT, 4)
        arguments = [address, alignment, is_loaded, code.spread(0.0)]
        return code.builder.call(function, arguments)


def _higher(code: Emitter, one: Any, other: Any) -> Any:
    builder = code.builder
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)
