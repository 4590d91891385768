"""Owns the words that the kernel of attention is called with."""

from __future__ import annotations

from enum import IntEnum, auto


class Word(IntEnum):
    """Addresses, then numbers.

    `MASK` is what is added to scores, or 0. With `SEEN` and `UNSEEN`, addresses of a
    float each, or 0, it is of bytes: the first float is added where one is set, the
    second elsewhere. `ROOM` is memory of `SHARE` floats for each thread. A batch has
    `HEADS` heads, each `ROWS` queries and `KEYS` keys of `SIZE` floats; threads share
    out `ITEMS`, each `PART` rows of a head, of which a head has `PARTS`. `SCALE` holds
    the bits of a float. The last ones are distances in elements: between batches, heads
    and rows of each tensor.
    """

    QUERY = 0
    KEY = auto()
    VALUE = auto()
    MASK = auto()
    RESULT = auto()
    ROOM = auto()
    SEEN = auto()
    UNSEEN = auto()
    HEADS = auto()
    ROWS = auto()
    KEYS = auto()
    SIZE = auto()
    PART = auto()
    PARTS = auto()
    ITEMS = auto()
    SHARE = auto()
    SCALE = auto()
    IS_CAUSAL = auto()
    THREADS = auto()
    QUERY_BATCH = auto()
    QUERY_HEAD = auto()
    QUERY_ROW = auto()
    KEY_BATCH = auto()
    KEY_HEAD = auto()
    KEY_ROW = auto()
    VALUE_BATCH = auto()
    VALUE_HEAD = auto()
    VALUE_ROW = auto()
    MASK_BATCH = auto()
    MASK_HEAD = auto()
    MASK_ROW = auto()
    RESULT_BATCH = auto()
    RESULT_HEAD = auto()
    RESULT_ROW = auto()


# The first of the three distances of each tensor, by its address.
DISTANCES = {
    Word.QUERY: Word.QUERY_BATCH,
    Word.KEY: Word.KEY_BATCH,
    Word.VALUE: Word.VALUE_BATCH,
    Word.MASK: Word.MASK_BATCH,
    Word.RESULT: Word.RESULT_BATCH,
}
