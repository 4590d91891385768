"""Owns the kernel that joins rows of tensors and attends to them, in one call.

A cache that grows is copied with the rows that are added, and a query sees all of them:
for few rows, calls between such steps take longer than the steps, and for many the rows
of a head that have just been copied are in caches that those of all heads do not fit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cached_property
from typing import Any, ClassVar

from llvmlite import ir

from magweld.codegen.attention_kernels import AttentionKernels, room_of
from magweld.codegen.attention_words import Word
from magweld.codegen.emitter import FLOAT, POINTER, VOID, WORD, Emitter, define
from magweld.codegen.joined_words import ADDRESSED, ATTENTION_WORDS, Copy, Head
from magweld.codegen.shared_ranges import SharedRanges, Words
from magweld.codegen.vector_kernels import VectorKernels

_FLOAT_BYTES = 4


class _Run(IntEnum):
    """What threads that copy are given, and those that attend, too: their words."""

    ADDRESSES = 0
    WORDS = auto()
    THREADS = auto()
    ATTENTION = auto()
    ITEMS = auto()


@dataclass(frozen=True)
class JoinedKernels(VectorKernels):
    """Defines the kernels in a module, that of attention alone among them."""

    symbol: ClassVar[str] = "magweld_joined"

    def define(self) -> None:
        """Define `symbol`, which takes addresses of tensors, words and memory."""
        self._attention.define()
        copies = self._shared.region("copies", self._copies, _Run.THREADS)
        function = ir.Function(
            self.module, ir.FunctionType(VOID, [POINTER] * 3), self.symbol
        )
        code = Emitter(function, self.lanes)
        addresses, given, room = code.arguments
        builder, words = code.builder, Words(code, given)
        run = Words(code, code.words(len(_Run)))
        run.set(_Run.ADDRESSES, builder.ptrtoint(addresses, WORD))
        run.set(_Run.WORDS, builder.ptrtoint(given, WORD))
        run.set(_Run.THREADS, words[Head.THREADS])
        is_before = builder.not_(words.is_set(Head.BY_HEADS))
        with builder.if_then(builder.and_(words.is_set(Head.COPIES), is_before)):
            self._shared.start(run, copies, _Run.THREADS)
        before = code.sum(len(Head), code.product(words[Head.COPIES], len(Copy)))
        with code.loop(0, words[Head.ATTENTIONS]) as number:
            place = code.sum(before, code.product(number, ATTENTION_WORDS))
            block = _behind(code, given, place)
            builder.call(self._attend, [run.address, block, room])
        builder.ret_void()

    @cached_property
    def _attention(self) -> AttentionKernels:
        return AttentionKernels(self.module, self.lanes, self.registers)

    @cached_property
    def _shared(self) -> SharedRanges:
        return SharedRanges(self.module, self.lanes, "joined")

    def _copies(self, code: Emitter, address: Any, own: tuple[Any, Any, Any]) -> None:
        """Emit the shares of some threads in all copies."""
        _, low, high = own
        run = Words(code, address)
        with code.loop(low, high) as share, self._each_copy(run) as (block, copy):
            shares, rows = run[_Run.THREADS], copy[Copy.ROWS]
            bounds = [
                code.builder.udiv(code.product(rows, one), shares)
                for one in (share, code.sum(share, 1))
            ]
            code.builder.call(self._copy, [run.pointer(_Run.ADDRESSES), block, *bounds])

    def _heads(self, code: Emitter, address: Any, own: tuple[Any, Any, Any]) -> None:
        """Emit some heads, each behind the copies of its rows."""
        thread, low, high = own
        run = Words(code, address)
        attention = run.pointer(_Run.ATTENTION)
        room = room_of(Words(code, attention), thread)
        with code.loop(low, high) as number:
            with self._each_copy(run) as (block, copy):
                row = code.builder.sub(number, copy[Copy.FIRST])
                # A number before the first one is a very large one.
                is_own = code.builder.icmp_unsigned("<", row, copy[Copy.ROWS])
                with code.builder.if_then(is_own):
                    bounds = [row, code.sum(row, 1)]
                    addresses = run.pointer(_Run.ADDRESSES)
                    code.builder.call(self._copy, [addresses, block, *bounds])
            code.builder.call(self._attention.item, [attention, room, number])

    @contextlib.contextmanager
    def _each_copy(self, run: Words) -> Iterator[tuple[Any, Words]]:
        """Emit what is done for each copy, by its block: the address, and the words."""
        code, given = run.code, run.pointer(_Run.WORDS)
        with code.loop(0, Words(code, given)[Head.COPIES]) as number:
            place = code.sum(len(Head), code.product(number, len(Copy)))
            block = _behind(code, given, place)
            yield block, Words(code, block)

    @cached_property
    def _copy(self) -> ir.Function:
        """(addresses, block, first, end): some rows of a block."""
        kinds = (POINTER, POINTER, WORD, WORD)
        function = define(self.module, "joined_copy", *kinds)
        code = Emitter(function, self.lanes)
        addresses, address, first, end = code.arguments
        builder, block = code.builder, Words(code, address)
        floats = block[Copy.FLOATS]
        source, target = (
            _tensor(code, addresses, block[which], block[behind])
            for which, behind in (
                (Copy.SOURCE, Copy.SOURCE_BYTES),
                (Copy.TARGET, Copy.TARGET_BYTES),
            )
        )
        whole = builder.sub(floats, builder.urem(floats, code.word(self.lanes)))
        with code.loop(first, end) as row:
            here = code.at(source, code.product(row, block[Copy.SOURCE_PITCH]))
            there = code.at(target, code.product(row, block[Copy.TARGET_PITCH]))
            with code.loop(0, whole, self.lanes) as place:
                code.store(code.load(here, place), there, place)
            with code.loop(whole, floats) as place:
                one = builder.load(code.at(here, place), typ=FLOAT, align=_FLOAT_BYTES)
                builder.store(one, code.at(there, place), align=_FLOAT_BYTES)
        builder.ret_void()
        return function

    @cached_property
    def _attend(self) -> ir.Function:
        """(run, block, memory): attention, by words that have their addresses."""
        heads = self._shared.region("heads", self._heads, _Run.ITEMS)
        function = define(self.module, "joined_attend", *[POINTER] * 3)
        code = Emitter(function, self.lanes)
        run_address, address, room = code.arguments
        builder, run = code.builder, Words(code, run_address)
        addresses = run.pointer(_Run.ADDRESSES)
        numbers = Words(code, address)
        given = Words(code, _behind(code, address, len(ADDRESSED)))
        own = Words(code, code.words(len(Word)))
        for word in Word:
            own.set(word, given[word])
        for place, word in enumerate(ADDRESSED):
            found = _tensor(code, addresses, numbers[place], given[word])
            own.set(word, builder.ptrtoint(found, WORD))
        own.set(Word.ROOM, builder.ptrtoint(room, WORD))
        head = Words(code, run.pointer(_Run.WORDS))
        with builder.if_else(head.is_set(Head.BY_HEADS)) as (by_heads, alone):
            with by_heads:
                run.set(_Run.ATTENTION, builder.ptrtoint(own.address, WORD))
                run.set(_Run.ITEMS, own[Word.ITEMS])
                run.set(_Run.THREADS, own[Word.THREADS])
                self._shared.start(run, heads, _Run.THREADS)
            with alone:
                attention = self.module.get_global(AttentionKernels.symbol)
                builder.call(attention, [own.address])
        builder.ret_void()
        return function


def _behind(code: Emitter, address: Any, words: Any) -> Any:
    """Return the address so many words behind another one."""
    return code.builder.gep(address, [code.word(words)], source_etype=WORD)


def _tensor(code: Emitter, addresses: Any, number: Any, behind: Any) -> Any:
    """Return an address some bytes behind that of a tensor; 0 if its number is none."""
    builder, zero = code.builder, code.word(0)
    is_none = builder.icmp_signed("<", number, zero)
    place = builder.select(is_none, zero, number)
    slot = builder.gep(addresses, [place], source_etype=WORD)
    address = code.sum(builder.load(slot, typ=WORD), behind)
    return builder.inttoptr(builder.select(is_none, zero, address), POINTER)
