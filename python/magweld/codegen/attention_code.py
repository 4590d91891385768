"""Owns native code for attention over any number of queries and keys, and its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from magweld.codegen.attention_kernels import AttentionKernels
from magweld.codegen.attention_words import Word
from magweld.codegen.joined_kernels import JoinedKernels
from magweld.codegen.loader import LoadedObjects
from magweld.codegen.shared_code import SharedCode, WordsFunction, emit_kernels

_WORDS: Final = ctypes.c_int64 * len(Word)
_JOIN: Final = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)


class AttentionCode:
    """The native code, in memory as long as this value.

    Attributes:
        join_address: The address of what `join` calls.
    """

    @staticmethod
    def emit() -> bytes:
        """Compile it for the CPU of this process; return the object file."""
        return emit_kernels("attention", [JoinedKernels])

    def __init__(self, code: bytes) -> None:
        """Load an object file."""
        alone, joined = AttentionKernels.symbol, JoinedKernels.symbol
        self._objects = LoadedObjects([code], [alone, joined])
        self._run = WordsFunction(self._objects, alone)
        self.join_address = self._objects.address(joined)
        self._join = _JOIN(self.join_address)

    def run(self, words: Sequence[int]) -> None:
        """Compute attention by all of its words, in their order."""
        held = _WORDS(*words)
        self._run(held)

    def join(self, addresses: int | bytes, words: bytes, room: int) -> None:
        """Copy rows and compute attention behind them.

        Args:
            addresses: Of the tensors that the words name by their numbers, or where
                these are.
            words: As `magweld.codegen.joined_words` has them.
            room: The address of memory that attention needs.
        """
        self._join(addresses, words, room)


ATTENTION_CODE: Final = SharedCode("attention", AttentionCode.emit, AttentionCode)
