"""Owns the question whether exception handlers let an exception through."""

from __future__ import annotations

from typing import Any, Final

from magweld.frontend.monitor.observer import Observer

# Instructions of a handler that only look whether it is meant.
_LOOKING: Final = frozenset(
    {"BUILD_TUPLE", "COPY", "LOAD_CONST", "NOP", "POP_EXCEPT", "PUSH_EXC_INFO", "SWAP"}
)
_MAX_LOOKS: Final = 64


def lets_through(observer: Observer, offset: int, raised: type[BaseException]) -> bool:
    """Return whether a handler, and those around it, only raise an exception again.

    Args:
        observer: Of the frame.
        offset: Where the handler begins.
        raised: Class of the exception.
    """
    caught: list[Any] = []
    rows, frame = observer.rows, observer.frame
    for _ in range(_MAX_LOOKS):
        row = rows[offset >> 1]
        if row is None:
            return False
        following = min(row.normal, default=-1)
        if row.opname == "RERAISE":
            if not row.handlers:
                return True
            # Each instruction has one handler, which is within those around it.
            (following,) = row.handlers
        elif row.opname == "LOAD_GLOBAL":
            builtin = frame.f_builtins.get(row.argval)
            caught.append(frame.f_globals.get(row.argval, builtin))
        elif row.opname == "CHECK_EXC_MATCH":
            if not caught or not all(_is_other(kind, raised) for kind in caught):
                return False
            caught.clear()
        elif row.opname.startswith("POP_JUMP") and row.opname.endswith("IF_FALSE"):
            following = row.argval
        elif row.opname not in _LOOKING:
            return False
        offset = following
    return False


def _is_other(kind: Any, raised: type[BaseException]) -> bool:
    return issubclass(type(kind), type) and kind not in raised.__mro__
