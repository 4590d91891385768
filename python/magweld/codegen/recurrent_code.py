"""Owns native code for layers of LSTMs over any number of steps, and its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Final

from magweld.codegen.loader import LoadedObjects
from magweld.codegen.recurrent_kernels import RecurrentKernels, Word
from magweld.codegen.shared_code import SharedCode, WordsFunction, emit_kernels

_WORDS: Final = ctypes.c_int64 * len(Word)


class RecurrentCode:
    """The native code, in memory as long as this value."""

    @staticmethod
    def emit() -> bytes:
        """Compile it for the CPU of this process; return the object file."""
        return emit_kernels("recurrent", [RecurrentKernels])

    def __init__(self, code: bytes) -> None:
        """Load an object file."""
        symbol = RecurrentKernels.symbol
        self._run = WordsFunction(LoadedObjects([code], [symbol]), symbol)

    def run(self, words: Mapping[Word, int]) -> None:
        """Run a layer by all of its words."""
        found = _WORDS()
        for word, value in words.items():
            found[word] = value
        self._run(found)


RECURRENT_CODE: Final = SharedCode("recurrent", RecurrentCode.emit, RecurrentCode)
