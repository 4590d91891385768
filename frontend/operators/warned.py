"""Owns what operators warn of while they are observed: shown as of the user's line."""

from __future__ import annotations

import builtins
import contextlib
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, Final, NamedTuple

_MODULE: Final[Any] = warnings


def _call(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


class Place(NamedTuple):
    """A line of the program where an operator warns.

    Attributes:
        filename: File of its code.
        line: The line.
        function: Name of the code.
        namespace: Global variables of the function, which know what has been shown.
    """

    filename: str
    line: int
    function: str
    namespace: dict[str, Any]

    def caller(self, namespace: dict[str, Any]) -> Callable[[Any, Any, Any], Any]:
        """Return what calls a function as the line does.

        Args:
            namespace: The global variables that it has.
        """
        code = _call.__code__.replace(
            co_filename=self.filename,
            co_firstlineno=self.line - 1,
            co_name=self.function,
        )
        return FunctionType(code, namespace)


class WarningWatch:
    """Calls operators, and notes whether they warn.

    Attributes:
        seen: Whether the last one has.
        place: The line that has called it, None if it is not known.
    """

    def __init__(self) -> None:
        self.seen = False
        self.place: Place | None = None
        self._thread = threading.get_ident()
        self._filter = ("ignore", _Noting(self), Warning, None, 0)

    def is_observing(self) -> bool:
        """Whether the thread is the one that observes."""
        return threading.get_ident() == self._thread

    def call(self, frame: FrameType | None, func: Any, args: Any, kwargs: Any) -> Any:
        """Call an operator as a frame of the program does.

        Native code warns at the innermost frame of Python. That is one of its own here,
        where nothing has been warned of before; what it warns of is then shown or left
        out as for the line of the program.

        Args:
            frame: The frame, None if it is not known.
            func: The operator.
            args: Its arguments.
            kwargs: The others.
        """
        self.seen = False
        filters = warnings.filters
        # Those that are left out now may be shown in another call. The list alone is
        # changed, and put back: lines that have warned are not forgotten.
        filters.insert(0, self._filter)  # type: ignore[attr-defined]
        try:
            return self._call_as(_caller(frame, func), func, args, kwargs)
        finally:
            with contextlib.suppress(ValueError):
                filters.remove(self._filter)  # type: ignore[attr-defined]

    def _call_as(
        self, frame: FrameType | None, func: Any, args: Any, kwargs: Any
    ) -> Any:
        if frame is None or not frame.f_lineno:
            self.place = None
            return func(*args, **kwargs)
        code, names = frame.f_code, frame.f_globals
        self.place = Place(code.co_filename, frame.f_lineno, code.co_name, names)
        # Nothing has been warned of in these.
        own = {"__name__": names.get("__name__"), "__builtins__": builtins}
        call = self.place.caller(own)
        noted = _Noted(self, frame, self.place[:2], _MODULE._showwarnmsg)
        _MODULE._showwarnmsg = noted
        try:
            return call(func, args, kwargs)
        finally:
            if _MODULE._showwarnmsg is noted:
                _MODULE._showwarnmsg = noted.show


def _caller(frame: FrameType | None, func: Any) -> FrameType | None:
    """Return the frame that calls: a function of Python hands itself to the mode."""
    if frame is None or frame.f_code is not getattr(func, "__code__", None):
        return frame
    return frame.f_back


@dataclass(frozen=True)
class _Noting:
    """Stands for the text of a filter that fits no warning, and notes all.

    Attributes:
        watch: Takes note.
    """

    watch: WarningWatch

    def match(self, text: str) -> None:
        """Note a warning of the thread that observes."""
        if self.watch.is_observing():
            self.watch.seen = True


@dataclass(frozen=True)
class _Noted:
    """Shows warnings of the thread that observes as of the line of the program.

    Attributes:
        watch: Knows the thread.
        frame: The frame of the program.
        place: File and line of the call that is one of its own.
        show: Shows a warning.
    """

    watch: WarningWatch
    frame: FrameType
    place: tuple[str, int]
    show: Callable[[Any], None]

    def __call__(self, message: Any) -> None:
        if not self.watch.is_observing():
            self.show(message)
            return
        if (message.filename, message.lineno) != self.place:
            self.show(message)
            return
        _MODULE._showwarnmsg = self.show
        try:
            _show_at(self.frame, message)
        finally:
            _MODULE._showwarnmsg = self


def _show_at(frame: FrameType, message: Any) -> None:
    """Warn at a frame's line, which may have warned of the same before."""
    warnings.warn_explicit(
        message.message,
        message.category,
        message.filename,
        message.lineno,
        frame.f_globals.get("__name__") or "<unknown>",
        frame.f_globals.setdefault("__warningregistry__", {}),
        source=message.source,
    )
