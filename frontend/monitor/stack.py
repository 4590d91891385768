"""Owns reading interpreter frames: value stack, local slots, function object."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any, Final, NamedTuple

from magweld.frontend.monitor.code_table import slot_count


class Null:
    """Stands for an empty slot of the value stack."""

    def __repr__(self) -> str:
        return "<null>"


NULL: Final = Null()
_WORD: Final = ctypes.sizeof(ctypes.c_void_p)
# Include/internal/pycore_stackref.h of 3.14: the lowest bits of a slot tell whether it
# counts as a reference, is a number, or is empty, which is a pointer to nothing. The
# native reader of torch takes numbers for pointers.
MARKED: Final = sys.version_info >= (3, 14)


class _Layout(NamedTuple):
    """Byte offsets in `PyFrameObject` and `_PyInterpreterFrame`."""

    interpreter_frame: int
    function: int
    slots: int


# CPython: Include/internal/pycore_frame.h of each version; `is_supported` checks them
# against a known frame before the first use.
_LAYOUTS: Final = {
    (3, 11): _Layout(interpreter_frame=24, function=0, slots=72),
    (3, 12): _Layout(interpreter_frame=24, function=16, slots=72),
    (3, 13): _Layout(interpreter_frame=24, function=16, slots=72),
    (3, 14): _Layout(interpreter_frame=24, function=16, slots=80),
}

StackReader = Callable[[FrameType, int], list[Any]]


class FrameReader:
    """Reads frames of this interpreter version.

    Args:
        read_stack: A native reader `(frame, depth) -> list` with its own marker for
            empty slots, tried before the one here.
        null: That marker.
    """

    def __init__(self, read_stack: StackReader | None = None, null: Any = NULL) -> None:
        self._layout = _LAYOUTS[sys.version_info[:2]]
        self.null = null if read_stack is not None else NULL
        self.stack: StackReader = read_stack or self._read_stack

    def function(self, frame: FrameType) -> Any:
        """Return the function object that the frame runs."""
        base = self._base(frame)
        return _object_at(base + self._layout.function)

    def slot(self, frame: FrameType, index: int) -> Any:
        """Return a local, cell or free variable slot by number, NULL if empty."""
        return _object_at(self._base(frame) + self._layout.slots + index * _WORD)

    def suspended_stack(self, frame: FrameType, depth: int) -> list[Any]:
        """Return the value stack of a frame that has called another one.

        Native readers take the stack of such a frame for empty.

        Args:
            depth: How much of the stack is still its own.
        """
        return self._read_stack(frame, depth)

    def plain(self, value: Any) -> Any:
        """Return a value of a stack, NULL for an empty slot."""
        return NULL if value is self.null else value

    def _base(self, frame: FrameType) -> int:
        address = id(frame) + self._layout.interpreter_frame
        return int(ctypes.c_void_p.from_address(address).value or 0)

    def _read_stack(self, frame: FrameType, depth: int) -> list[Any]:
        first = slot_count(frame.f_code)
        if MARKED and depth > 0:
            address = self._base(frame) + self._layout.slots + first * _WORD
            words = (ctypes.c_ssize_t * depth).from_address(address)
            return [_of_word(word) for word in words]
        return [self.slot(frame, first + index) for index in range(depth)]


_MARKS: Final = 3
_NUMBER: Final = 3


def _object_at(address: int) -> Any:
    if MARKED:
        return _of_word(ctypes.c_ssize_t.from_address(address).value)
    try:
        return ctypes.py_object.from_address(address).value
    except ValueError:
        return NULL  # the slot is empty


def _of_word(word: int) -> Any:
    if word & _MARKS == _NUMBER:
        return word >> 2
    pointer = ctypes.c_ssize_t(word & ~_MARKS)
    return ctypes.py_object.from_buffer(pointer).value if pointer else NULL


def is_supported() -> bool:
    """Return whether frames of this interpreter can be read."""
    if sys.version_info[:2] not in _LAYOUTS or sys.implementation.name != "cpython":
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False  # objects have another layout
    marker = object()
    return _probe(marker)


def _probe(marker: object) -> bool:
    # A variable that held the frame would keep it, and with it all callers.
    return _is_readable(sys._getframe(), marker)


def _is_readable(frame: FrameType, marker: object) -> bool:
    reader = FrameReader()
    function = reader.function(frame)
    if type(function) is not FunctionType or function is not _probe:
        return False
    return reader.slot(frame, 0) is marker
