"""Owns native code that all programs of a process share, made when first wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


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
