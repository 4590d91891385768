"""Owns native code that all programs of a process share, made when first wanted."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from llvmlite import ir

from magweld.codegen.host import HostTarget, emit_object
from magweld.codegen.loader import LoadedObjects

T = TypeVar("T")
_TYPE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Kernels(Protocol):
    """Kernels of a module."""

    def define(self) -> None:
        """Define the function that runs them by its words, and what it calls."""


# Takes the module, floats of a vector, and how many vectors the CPU holds.
MakeKernels = Callable[[ir.Module, int, int], Kernels]


@functools.cache
def float_lanes() -> int:
    """Return the floats of a vector of the CPU of this process."""
    return HostTarget.detect().float_lanes


def emit_kernels(name: str, makers: Sequence[MakeKernels]) -> bytes:
    """Compile kernels for the CPU of this process; return the object file.

    Args:
        name: Of the module.
        makers: What makes the kernels.
    """
    target = HostTarget.detect()
    module = ir.Module(name=name)
    for make in makers:
        make(module, target.float_lanes, target.vector_registers).define()
    return emit_object([str(module)], target)


class WordsFunction:
    """A function in memory that takes the address of its words.

    Args:
        objects: Where it is; in memory as long as this value.
        symbol: Its name there.
    """

    def __init__(self, objects: LoadedObjects, symbol: str) -> None:
        self._objects = objects
        self._run = _TYPE(objects.address(symbol))

    def __call__(self, words: bytes | ctypes.Array[ctypes.c_int64]) -> None:
        """Run it by its words."""
        self._run(words)


class SharedCode(Generic[T]):
    """Native code of kernels whose sizes are arguments.

    Args:
        name: The name of it.
        emit: Compiles it for the CPU of this process; returns an object file.
        load: Takes an object file into memory.
    """

    def __init__(
        self, name: str, emit: Callable[[], bytes], load: Callable[[bytes], T]
    ) -> None:
        self.name = name
        self.emit = emit
        self._load = load
        self._code: T | None = None

    def __repr__(self) -> str:
        return f"<shared code '{self.name}'>"

    @property
    def is_loaded(self) -> bool:
        """Whether it is in memory."""
        return self._code is not None

    def load(self, data: bytes) -> T:
        """Take an object file into memory and return the code.

        Threads that load it at once may each get code of their own.
        """
        code = self._code = self._load(data)
        return code

    def loaded(self) -> T:
        """Return the code in memory; compile it here if it is not there."""
        code = self._code
        return self.load(self.emit()) if code is None else code
