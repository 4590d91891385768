"""Owns the native code that tells whether words of memory are as they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from llvmlite import ir

from magweld.codegen.emitter import POINTER, WORD, Emitter
from magweld.codegen.python_functions import TAKES_NONE, NativeFunction, call, give

_NAME: Final = "are_as_before"


def words_check(addresses: Sequence[int], words: Sequence[int]) -> Callable[[], bool]:
    """Return what tells whether words of memory are what they are said to be.

    Args:
        addresses: Where they are; there must be memory as long as it is asked.
        words: What they should be.
    """
    pairs = zip(addresses, words, strict=True)
    data = [number for pair in pairs for number in pair]
    return _native().on([len(addresses), *data])


@cache
def _native() -> NativeFunction:
    module = ir.Module(_NAME)
    kind = ir.FunctionType(POINTER, [POINTER, POINTER])
    code = Emitter(ir.Function(module, kind, _NAME), 1)
    builder = code.builder
    held, _ = code.arguments
    data = call(builder, "PyBytes_AsString", POINTER, [held])
    changed = builder.append_basic_block("changed")

    def word(number: object) -> object:
        slot = builder.gep(data, [code.word(number)], source_etype=WORD)
        return builder.load(slot, typ=WORD)

    with code.loop(0, word(0)) as index:
        first = code.sum(code.product(index, 2), 1)
        address, expected = word(first), word(code.sum(first, 1))
        now = builder.load(builder.inttoptr(address, POINTER), typ=WORD)
        onward = builder.append_basic_block("onward")
        is_same = builder.icmp_unsigned("==", now, expected)
        builder.cbranch(is_same, onward, changed)
        builder.position_at_end(onward)
    give(builder, True)
    give(ir.IRBuilder(changed), False)
    return NativeFunction(_NAME, module, TAKES_NONE)
