"""Owns what the native code of a call reads: what it makes and what it runs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

# Words of the data before those of arguments.
HEAD: Final = 9
# Words of a result before its sizes: its place, its dimensions, its type.
RESULT_HEAD: Final = 3


class Kind(IntEnum):
    """How native code is called that runs in a call.

    `KERNEL` takes the table. `CHECK` takes words, their count and the table, and gives
    0 unless the call is to be left to others. `STEP` takes the table, words and memory.
    """

    KERNEL = 0
    CHECK = 1
    STEP = 2


class Run(NamedTuple):
    """Native code that runs in a call.

    Attributes:
        kind: How it is called.
        function: Its address.
        words: The address of words that it takes.
        checks: How many checks these are of.
    """

    kind: Kind
    function: int
    words: int = 0
    checks: int = 0


class BoundCode(NamedTuple):
    """Native code of a step with its words: it takes a table, these and memory.

    Attributes:
        function: Its address.
        words: What it reads.
        floats: How many of memory it needs.
    """

    function: int
    words: bytes
    floats: int


class Memory(NamedTuple):
    """What a call takes of memory while it runs, as one tensor.

    Attributes:
        dtype: The number of the type of its elements.
        size: How many; 0 for none.
        parts: Where in the table addresses in it go, and how many bytes from its
            beginning each is.
    """

    dtype: int = 0
    size: int = 0
    parts: tuple[tuple[int, int], ...] = ()


_NO_MEMORY: Final = Memory()


class NewTensor(NamedTuple):
    """A result that is made in a call.

    Attributes:
        place: Where in the table its address goes.
        dtype: The number of its type.
        shape: Its extents.
        stride: Its strides.
    """

    place: int
    dtype: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def call_data(
    table: int,
    arguments: Sequence[int],
    results: Sequence[NewTensor],
    copies: Sequence[tuple[int, int]],
    runs: tuple[int, int] = (0, 0),
    memory: Memory = _NO_MEMORY,
) -> list[int]:
    """Return the data of a function that begins or does a call.

    Args:
        table: Where addresses go.
        arguments: Where in it those of arguments go.
        results: What is made.
        copies: From where to where in it addresses are copied then.
        runs: Where the words of each `Run` are, in order, and how many runs.
        memory: What there is only while the call runs.
    """
    counts = len(arguments), len(results), len(memory.parts), len(copies)
    data = [table, *runs, *counts, memory.dtype, memory.size, *arguments]
    for result in results:
        data += [result.place, len(result.shape), result.dtype]
        data += [*result.shape, *result.stride]
    pairs = (*memory.parts, *copies)
    return [*data, *(number for pair in pairs for number in pair)]
