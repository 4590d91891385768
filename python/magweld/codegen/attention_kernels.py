"""Owns the kernel of attention between any number of queries and keys.

Some rows of a head walk its keys in blocks. Scores of a block, their exponentials and
the sums of values stay in caches; what earlier blocks gave is scaled where a block has
a higher score than those, as in "FlashAttention", algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

from llvmlite import ir

from magweld.codegen.attention_keys import KEYS, AttentionKeys
from magweld.codegen.attention_masks import AttentionMasks
from magweld.codegen.attention_places import (
    HeadRows,
    mask_offset,
    row_of,
    rows_at,
    visible,
)
from magweld.codegen.attention_rows import AttentionRows
from magweld.codegen.attention_words import Word
from magweld.codegen.block_products import BlockProducts, Matrix
from magweld.codegen.emitter import FLOAT, POINTER, WORD, Emitter, define
from magweld.codegen.shared_ranges import SharedRanges, Words
from magweld.codegen.vector_kernels import VectorKernels

# Most rows that walk the keys together.
MOST_ROWS: Final = 64
# Rows for which keys are not turned, which takes longer than the products of a row.
_FEW_ROWS: Final = 2


class _Rooms(NamedTuple):
    """Memory of a thread.

    Scaled queries, sums of values, keys of a block side by side, scores, and for each
    row a vector of the highest score and one of sums of exponentials; then a row of
    zeros, and one of what a mask of bytes adds to scores.
    """

    scaled: Any
    sums: Any
    packed: Any
    scores: Any
    highest: Any
    total: Any
    zeros: Any
    mask: Any


def room_floats(part: int, size: int, lanes: int) -> int:
    """Return the floats of memory that a thread needs.

    Args:
        part: Rows that walk the keys together.
        size: Floats of a key.
        lanes: Floats of a vector.
    """
    return part * (2 * size + KEYS + 2 * lanes) + (size + 2) * KEYS


def room_of(words: Words, thread: Any) -> Any:
    """Return the address of the memory of a thread."""
    share = words.code.product(thread, words[Word.SHARE])
    return words.code.at(words.pointer(Word.ROOM), share)


@dataclass(frozen=True)
class AttentionKernels(VectorKernels):
    """Defines the kernel in a module."""

    symbol: ClassVar[str] = "magweld_attention"

    def define(self) -> None:
        """Define `symbol`, which computes attention by its words."""
        shared = SharedRanges(self.module, self.lanes, "attention")
        items = shared.region("items", self._items, Word.ITEMS)
        shared.entry(self.symbol, [items], Word.THREADS)

    @cached_property
    def _products(self) -> BlockProducts:
        return BlockProducts(self.module, self.lanes, self.registers)

    @cached_property
    def _keys(self) -> AttentionKeys:
        return AttentionKeys(self.module, self.lanes)

    @cached_property
    def _masks(self) -> AttentionMasks:
        return AttentionMasks(self.module, self.lanes)

    @cached_property
    def _weigh(self) -> ir.Function:
        return AttentionRows(self.module, self.lanes).weigh

    def _items(self, code: Emitter, address: Any, own: tuple[Any, Any, Any]) -> None:
        thread, low, high = own
        room = room_of(Words(code, address), thread)
        with code.loop(low, high) as number:
            code.builder.call(self.item, [address, room, number])

    @cached_property
    def item(self) -> ir.Function:
        """(words, memory, number): some rows of a head."""
        function = define(self.module, "attention_item", POINTER, POINTER, WORD)
        code = Emitter(function, self.lanes)
        address, room, number = code.arguments
        words = Words(code, address)
        rows, rooms = rows_at(words, number), self._rooms(words, room)
        self._begin(words, rows, rooms)
        # The last row sees the most keys.
        end = visible(words, code.sum(rows.first, rows.count))
        with code.loop(0, end, KEYS) as first:
            self._block(words, rows, rooms, first)
        self._end(words, rows, rooms)
        code.builder.ret_void()
        return function

    def _rooms(self, words: Words, room: Any) -> _Rooms:
        code = words.code
        part, size = words[Word.PART], words[Word.SIZE]
        rows = code.product(part, size)
        sizes = (
            *(rows, rows, code.product(size, KEYS), code.product(part, KEYS)),
            *[code.product(part, self.lanes)] * 2,
            KEYS,
        )
        found = [room]
        for floats in sizes:
            found.append(code.at(found[-1], floats))
        return _Rooms(*found)

    def _begin(self, words: Words, rows: HeadRows, rooms: _Rooms) -> None:
        """Emit what stands before the first key."""
        code = words.code
        size, zero = words[Word.SIZE], code.spread(0.0)
        slot = words.slot(Word.SCALE)
        scale = code.spread(code.builder.load(slot, typ=FLOAT, align=4))
        queries = row_of(words, Word.QUERY, rows, rows.first)
        with code.loop(0, KEYS, self.lanes) as place:
            code.store(zero, rooms.zeros, place)
        with code.loop(0, rows.count) as row:
            query = code.at(queries, code.product(row, words[Word.QUERY_ROW]))
            with code.loop(0, size, self.lanes) as start:
                place = code.sum(code.product(row, size), start)
                value = code.builder.fmul(code.load(query, start), scale)
                code.store(value, rooms.scaled, place)
                code.store(zero, rooms.sums, place)
            place = code.product(row, self.lanes)
            code.store(code.spread(-math.inf), rooms.highest, place)
            code.store(zero, rooms.total, place)

    def _block(self, words: Words, rows: HeadRows, rooms: _Rooms, first: Any) -> None:
        """Emit a block of keys, from the first of them."""
        code, builder = words.code, words.code.builder
        size = words[Word.SIZE]
        count = code.least(KEYS, builder.sub(words[Word.KEYS], first))
        more = code.sum(count, self.lanes - 1)
        vectors = builder.udiv(more, code.word(self.lanes))
        self._scores(words, rows, rooms, (first, count, vectors))
        is_of_all = builder.icmp_unsigned("==", words[Word.MASK_ROW], code.word(0))
        of_bytes = builder.and_(words.is_set(Word.MASK), words.is_set(Word.SEEN))
        with builder.if_then(builder.and_(of_bytes, is_of_all)):
            self._spread_mask(words, rows, rooms, (rows.first, first, count))
        is_of_each = builder.and_(of_bytes, builder.not_(is_of_all))
        with code.loop(0, rows.count) as row:
            with builder.if_then(is_of_each):
                at = code.sum(rows.first, row)
                self._spread_mask(words, rows, rooms, (at, first, count))
            self._weighed(words, rows, rooms, (row, first, vectors))
        values = row_of(words, Word.VALUE, rows, first)
        sums = Matrix(rooms.sums, size)
        self._products.emit(
            code,
            (Matrix(rooms.scores, KEYS), Matrix(values, words[Word.VALUE_ROW])),
            (sums, sums),
            (rows.count, builder.udiv(size, code.word(self.lanes)), count),
        )

    def _scores(
        self, words: Words, rows: HeadRows, rooms: _Rooms, own: tuple[Any, Any, Any]
    ) -> None:
        """Emit the scores of a block of keys.

        Args:
            words: Of the call.
            rows: Whose scores.
            rooms: Of the thread.
            own: The first key, how many there are, and vectors of scores.
        """
        code, builder = words.code, words.code.builder
        first, count, vectors = own
        size, pitch = words[Word.SIZE], words[Word.KEY_ROW]
        keys = row_of(words, Word.KEY, rows, first)
        is_few = builder.icmp_unsigned("<=", rows.count, code.word(_FEW_ROWS))
        with builder.if_else(is_few) as (few, many):
            with few, code.loop(0, rows.count) as row:
                query = code.at(rooms.scaled, code.product(row, size))
                scores = code.at(rooms.scores, code.product(row, KEYS))
                builder.call(self._keys.few, [query, keys, pitch, size, count, scores])
            with many:
                builder.call(self._keys.pack, [keys, pitch, size, count, rooms.packed])
                self._products.emit(
                    code,
                    (Matrix(rooms.scaled, size), Matrix(rooms.packed, KEYS)),
                    (Matrix(rooms.zeros, 0), Matrix(rooms.scores, KEYS)),
                    (rows.count, vectors, size),
                )

    def _spread_mask(
        self, words: Words, rows: HeadRows, rooms: _Rooms, own: tuple[Any, Any, Any]
    ) -> None:
        """Emit what a mask of bytes adds to the scores of a row.

        Args:
            words: Of the call.
            rows: To which the row belongs.
            rooms: Of the thread.
            own: The number of the row in the head, the first key, and how many.
        """
        code = words.code
        row, first, count = own
        offset = code.sum(first, mask_offset(words, rows, row))
        arguments = [
            code.byte_at(words.pointer(Word.MASK), offset),
            words.pointer(Word.SEEN),
            words.pointer(Word.UNSEEN),
            count,
            rooms.mask,
        ]
        code.builder.call(self._masks.spread, arguments)

    def _weighed(
        self, words: Words, rows: HeadRows, rooms: _Rooms, own: tuple[Any, Any, Any]
    ) -> None:
        """Emit the exponentials of the scores of a row.

        Args:
            words: Of the call.
            rows: To which the row belongs.
            rooms: Of the thread.
            own: The number of the row, the first key, and vectors of scores.
        """
        code, builder = words.code, words.code.builder
        row, first, vectors = own
        at = code.sum(rows.first, row)
        none = builder.inttoptr(code.word(0), POINTER)
        offset = code.sum(first, mask_offset(words, rows, at))
        mask = code.at(words.pointer(Word.MASK), offset)
        mask = builder.select(words.is_set(Word.SEEN), rooms.mask, mask)
        size, lane = words[Word.SIZE], code.product(row, self.lanes)
        arguments = [
            code.at(rooms.scores, code.product(row, KEYS)),
            builder.select(words.is_set(Word.MASK), mask, none),
            builder.sub(visible(words, code.sum(at, 1)), first),
            vectors,
            code.at(rooms.highest, lane),
            code.at(rooms.total, lane),
            code.at(rooms.sums, code.product(row, size)),
            size,
        ]
        builder.call(self._weigh, arguments)

    def _end(self, words: Words, rows: HeadRows, rooms: _Rooms) -> None:
        """Emit the results; rows that see no key have zeros."""
        code, builder = words.code, words.code.builder
        size, one = words[Word.SIZE], code.spread(1.0)
        results = row_of(words, Word.RESULT, rows, rows.first)
        with code.loop(0, rows.count) as row:
            total = code.load(rooms.total, code.product(row, self.lanes))
            total = code.across(total, builder.fadd)
            is_empty = builder.fcmp_ordered("==", total, code.spread(0.0))
            inverse = builder.fdiv(one, builder.select(is_empty, one, total))
            result = code.at(results, code.product(row, words[Word.RESULT_ROW]))
            with code.loop(0, size, self.lanes) as start:
                value = code.load(rooms.sums, code.product(row, size), start)
                code.store(builder.fmul(value, inverse), result, start)
