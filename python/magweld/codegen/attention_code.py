"""Owns native code for attention over any number of queries and keys, and its calls."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from magweld.codegen.attention_kernels import AttentionKernels
from magweld.codegen.attention_words import Word
from magweld.codegen.host import HostTarget, emit_object
from magweld.codegen.loader import LoadedObjects
from magweld.codegen.shared_code import SharedCode

_TYPE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_WORDS: Final = ctypes.c_int64 * len(Word)
_FLOAT_BITS: Final = 32


class AttentionCode:
    """The native code, in memory as long as this value."""

    @staticmethod
    def emit() -> bytes:
        """Compile it for the CPU of this process; return the object file."""
        target = HostTarget.detect()
        module = ir.Module(name="attention")
        hardware = (target.vector_bits // _FLOAT_BITS, target.vector_registers)
        AttentionKernels(module, *hardware).define()
        return emit_object([str(module)], target)

    def __init__(self, code: bytes) -> None:
        """Load an object file."""
        symbol = AttentionKernels.symbol
        self._objects = LoadedObjects([code], [symbol])
        self._run = _TYPE(self._objects.address(symbol))

    def run(self, words: Sequence[int]) -> None:
        """Compute attention by all of its words, in their order."""
        held = _WORDS(*words)
        self._run(ctypes.addressof(held))


@functools.cache
def size_lanes() -> int:
    """Return what the floats of a key have to be a multiple of."""
    return HostTarget.detect().vector_bits // _FLOAT_BITS


ATTENTION_CODE: Final = SharedCode("attention", AttentionCode.emit, AttentionCode)
