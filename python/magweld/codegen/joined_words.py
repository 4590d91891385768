"""Owns the words of a run of copies of rows and attention behind them."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Final

from magweld.codegen.attention_words import Word


class Head(IntEnum):
    """What the words begin with: how many copies, attentions and threads for copies.

    With `BY_HEADS` there is one attention. A row of a copy is copied when the head of
    its number, counted through all batches, is computed, and threads are those of the
    attention. Blocks of `Copy` follow, then blocks of `ATTENTION_WORDS` words.
    """

    COPIES = 0
    ATTENTIONS = auto()
    THREADS = auto()
    BY_HEADS = auto()


class Copy(IntEnum):
    """Rows of floats that are copied.

    Tensors are told by their numbers among the addresses of the call; what is behind a
    first row is in bytes, pitches from one row to the next are in floats. `FIRST` is
    the number of the first row in the target.
    """

    SOURCE = 0
    SOURCE_BYTES = auto()
    SOURCE_PITCH = auto()
    TARGET = auto()
    TARGET_BYTES = auto()
    TARGET_PITCH = auto()
    ROWS = auto()
    FLOATS = auto()
    FIRST = auto()


# Words of attention that are addresses. Its block has the numbers of these tensors, in
# order, -1 for one that there is not, and then all words: bytes behind the tensors in
# the place of their addresses.
ADDRESSED: Final = (
    Word.QUERY,
    Word.KEY,
    Word.VALUE,
    Word.MASK,
    Word.SEEN,
    Word.UNSEEN,
    Word.RESULT,
)
ATTENTION_WORDS: Final = len(ADDRESSED) + len(Word)
