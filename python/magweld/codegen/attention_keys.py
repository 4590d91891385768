"""Owns what is made of the keys of a block: they are turned, or rows score them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from llvmlite import ir

from magweld.codegen.emitter import POINTER, WORD, Emitter, define
from magweld.codegen.window_transforms import transposed

# Keys of a block.
KEYS: Final = 128


@dataclass(frozen=True)
class AttentionKeys:
    """Defines the functions in a module.

    Both take as many keys as a vector has lanes at a time. Behind the last one it is
    there again, as often as a vector has room.

    Attributes:
        module: The module.
        lanes: Floats of a vector.
    """

    module: ir.Module
    lanes: int

    @cached_property
    def pack(self) -> ir.Function:
        """(keys, pitch, size, count, target): elements of keys side by side."""
        kinds = (POINTER, WORD, WORD, WORD, POINTER)
        function = define(self.module, "attention_pack", *kinds)
        code = Emitter(function, self.lanes)
        keys, pitch, size, count, target = code.arguments
        with code.loop(0, count, self.lanes) as first:
            sources = self._sources(code, (keys, pitch), first, count)
            with code.loop(0, size, self.lanes) as start:
                vectors = [code.load(source, start) for source in sources]
                into = code.at(target, code.product(start, KEYS), first)
                for number, value in enumerate(transposed(code, vectors)):
                    code.store(value, into, number * KEYS)
        code.builder.ret_void()
        return function

    @cached_property
    def few(self) -> ir.Function:
        """(query, keys, pitch, size, count, scores): the scores of a row."""
        kinds = (POINTER, POINTER, WORD, WORD, WORD, POINTER)
        function = define(self.module, "attention_few", *kinds)
        code = Emitter(function, self.lanes)
        query, keys, pitch, size, count, scores = code.arguments
        with code.loop(0, count, self.lanes) as first:
            sources = self._sources(code, (keys, pitch), first, count)
            sums = [code.variable(code.spread(0.0)) for _ in sources]
            with code.loop(0, size, self.lanes) as start:
                value = code.load(query, start)
                for one, source in zip(sums, sources, strict=True):
                    before = code.builder.load(one, typ=code.vector)
                    after = code.fma(code.load(source, start), value, before)
                    code.builder.store(after, one)
            lanes = [code.builder.load(one, typ=code.vector) for one in sums]
            code.store(_summed(code, transposed(code, lanes)), scores, first)
        code.builder.ret_void()
        return function

    def _sources(
        self, code: Emitter, keys: tuple[Any, Any], first: Any, count: Any
    ) -> list[Any]:
        """Return the addresses of the keys of a vector.

        Args:
            code: Emits.
            keys: The address of all keys, and the distance between two.
            first: The first one.
            count: How many there are.
        """
        address, pitch = keys
        last = code.sum(count, -1)
        numbers = (code.least(code.sum(first, n), last) for n in range(self.lanes))
        return [code.at(address, code.product(number, pitch)) for number in numbers]


def _summed(code: Emitter, values: Sequence[Any]) -> Any:
    """Return the sum of vectors, in pairs."""
    found = list(values)
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [code.builder.fadd(one, other) for one, other in pairs]
    return found[0]
