"""Owns native code for layers of LSTMs over any number of steps, and its calls."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Final

from llvmlite import ir

from magweld.codegen.host import HostTarget, emit_object
from magweld.codegen.loader import LoadedObjects
from magweld.codegen.recurrent_kernels import RecurrentKernels, Word
from magweld.codegen.shared_code import SharedCode

_TYPE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_WORDS: Final = ctypes.c_int64 * len(Word)
_FLOAT_BITS: Final = 32


class RecurrentCode:
    """The native code, in memory as long as this value."""

    @staticmethod
    def emit() -> bytes:
        """Compile it for the CPU of this process; return the object file."""
        target = HostTarget.detect()
        module = ir.Module(name="recurrent")
        hardware = (target.vector_bits // _FLOAT_BITS, target.vector_registers)
        RecurrentKernels(module, *hardware).define()
        return emit_object([str(module)], target)

    def __init__(self, code: bytes) -> None:
        """Load an object file."""
        symbol = RecurrentKernels.symbol
        self._objects = LoadedObjects([code], [symbol])
        self._run = _TYPE(self._objects.address(symbol))

    def run(self, words: Mapping[Word, int]) -> None:
        """Run a layer by all of its words."""
        found = _WORDS()
        for word, value in words.items():
            found[word] = value
        self._run(ctypes.addressof(found))


@functools.cache
def unit_lanes() -> int:
    """Return what the units of a layer have to be a multiple of."""
    return HostTarget.detect().vector_bits // _FLOAT_BITS


RECURRENT_CODE: Final = SharedCode("recurrent", RecurrentCode.emit, RecurrentCode)
