"""Owns whether what a program prints, warns and logs is taken by native code only.

Such code neither looks at the program nor raises. So nobody sees whether a write of the
program was before or behind it.
"""

from __future__ import annotations

import io
import logging
import sys
import types
import warnings
from typing import Any, Final

from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.mro import find_in_mro

_BYTES: Final = (io.FileIO, io.BytesIO)
_BUFFERS: Final = (io.BufferedWriter, io.BufferedRandom)
_OVERRIDDEN: Final = (
    *("write", "flush", "closed", "buffer", "encoding"),
    *("emit", "handle", "format", "acquire"),
)
_HANDLERS: Final = (logging.StreamHandler, logging.FileHandler)
_SHOW_ORIGINAL: Final[Any] = vars(warnings)["_showwarning_orig"]
_FORMAT_ORIGINAL: Final[Any] = vars(warnings)["_formatwarning_orig"]


def prints_plainly(encoded: bool) -> bool:
    """Return whether the standard output only takes what is printed.

    Args:
        encoded: Whether the text has other characters than those of ASCII.
    """
    stream: Any = sys.stdout
    if not _is_plain(stream):
        return False
    if not encoded or type(stream) is io.StringIO or stream is None:
        return True
    name: str = stream.encoding
    return name.lower().replace("-", "") == "utf8"


def _is_plain(stream: Any) -> bool:
    if stream is None:
        return True
    kind = type(stream)
    if kind is not io.StringIO and not issubclass(kind, io.TextIOWrapper):
        return False
    base = io.StringIO if kind is io.StringIO else io.TextIOWrapper
    if _is_overridden(stream, base) or stream.closed:
        return False
    return kind is io.StringIO or _is_native(stream.buffer)


def _is_overridden(obj: Any, base: type) -> bool:
    own = instance_dict(obj) or {}
    if not own.keys().isdisjoint(_OVERRIDDEN):
        return True
    names = [name for name in _OVERRIDDEN if hasattr(base, name)]
    return any(find_in_mro(type(obj), n) is not find_in_mro(base, n) for n in names)


def _is_native(buffer: Any) -> bool:
    if type(buffer) in _BUFFERS:
        buffer = buffer.raw
    return type(buffer) in _BYTES


def warns_plainly(category: type[Warning]) -> bool:
    """Return whether a warning is dropped, written to a stream or kept in a list."""
    module: Any = warnings
    if module.showwarning is not _SHOW_ORIGINAL or module.defaultaction == "error":
        return False
    if module.formatwarning is not _FORMAT_ORIGINAL or not _is_plain(sys.stderr):
        return False
    show = module._showwarnmsg_impl
    if type(show) is types.FunctionType:
        if show.__globals__ is not vars(warnings):
            return False
    elif type(getattr(show, "__self__", None)) is not list:
        return False
    return not any(
        action == "error" and issubclass(category, kind)
        for action, _, kind, _, _ in warnings.filters
    )


def logs_plainly(logger: logging.Logger) -> bool:
    """Return whether all handlers of a logger are plain ones of the library."""
    if logging.getLogRecordFactory() is not logging.LogRecord:
        return False
    current: Any = logger
    handlers: list[Any] = []
    while current is not None:
        if current.filters:
            return False
        handlers += current.handlers
        current = current.parent if current.propagate else None
    return all(map(_handles_plainly, handlers or [logging.lastResort]))


def _handles_plainly(handler: Any) -> bool:
    if handler is None or type(handler) is logging.NullHandler:
        return True
    if type(handler) not in _HANDLERS and handler is not logging.lastResort:
        return False
    if handler.filters or _is_overridden(handler, type(handler)):
        return False
    formatter = handler.formatter
    plain = formatter is None or type(formatter) is logging.Formatter
    return plain and _is_plain(handler.stream)
