"""Owns which rows of a head are computed together, and where they lie in tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

from magweld.codegen.attention_words import DISTANCES, Word
from magweld.codegen.shared_ranges import Words


class HeadRows(NamedTuple):
    """Some rows of a head: its batch, its number, the first row, and how many."""

    batch: Any
    head: Any
    first: Any
    count: Any


def rows_at(words: Words, number: Any) -> HeadRows:
    """Return the rows that a number of the range means."""
    code, builder = words.code, words.code.builder
    parts, heads, part = words[Word.PARTS], words[Word.HEADS], words[Word.PART]
    head = builder.udiv(number, parts)
    first = code.product(builder.urem(number, parts), part)
    count = code.least(part, builder.sub(words[Word.ROWS], first))
    return HeadRows(builder.udiv(head, heads), builder.urem(head, heads), first, count)


def row_of(words: Words, tensor: Word, rows: HeadRows, row: Any) -> Any:
    """Return the address of a row of the head in a tensor."""
    code, first = words.code, DISTANCES[tensor]
    places = (rows.batch, rows.head, row)
    offsets = [code.product(at, words[first + n]) for n, at in enumerate(places)]
    return code.at(words.pointer(tensor), *offsets)


def mask_offset(words: Words, rows: HeadRows, row: Any) -> Any:
    """Return how many elements the mask of a row is behind that of the first one."""
    code = words.code
    places = enumerate((rows.batch, rows.head, row))
    return code.sum(*(code.product(at, words[Word.MASK_BATCH + n]) for n, at in places))


def visible(words: Words, most: Any) -> Any:
    """Return how many keys are seen, of which a causal row sees `most`."""
    keys = words[Word.KEYS]
    is_causal = words.is_set(Word.IS_CAUSAL)
    return words.code.builder.select(is_causal, words.code.least(keys, most), keys)
