"""Owns native code for attention over any number of queries and keys, and its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from magweld.codegen.attention_kernels import AttentionKernels
from magweld.codegen.attention_words import Word
from magweld.codegen.loader import LoadedObjects
from magweld.codegen.shared_code import SharedCode, WordsFunction, emit_kernels

_WORDS: Final = ctypes.c_int64 * len(Word)


class AttentionCode:
    """The native code, in memory as long as this value."""

    @staticmethod
    def emit() -> bytes:
        """Compile it for the CPU of this process; return the object file."""
        return emit_kernels("attention", [AttentionKernels])

    def __init__(self, code: bytes) -> None:
        """Load an object file."""
        symbol = AttentionKernels.symbol
        self._run = WordsFunction(LoadedObjects([code], [symbol]), symbol)

    def run(self, words: Sequence[int]) -> None:
        """Compute attention by all of its words, in their order."""
        held = _WORDS(*words)
        self._run(held)


ATTENTION_CODE: Final = SharedCode("attention", AttentionCode.emit, AttentionCode)
