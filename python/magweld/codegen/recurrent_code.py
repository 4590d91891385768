"""Owns native code for layers of LSTMs over any number of steps, and its calls."""

from __future__ import annotations

from typing import Final

from magweld.codegen.loader import LoadedObjects
from magweld.codegen.recurrent_kernels import RecurrentKernels
from magweld.codegen.shared_code import SharedCode, WordsFunction, emit_kernels


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

    def run(self, words: bytes) -> None:
        """Run a layer by all of its words, in their order."""
        self._run(words)


RECURRENT_CODE: Final = SharedCode("recurrent", RecurrentCode.emit, RecurrentCode)
