"""Owns what a call does outside of what it reaches: tells, and writes of a record."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.steps import (
    Call,
    Constant,
    Environment,
    Fetched,
    Mock,
    discard_key,
)
from magweld.frontend.state.values import is_scalar

_SHOW_ORIGINAL: Final[Any] = vars(warnings)["_showwarning_orig"]


class Silence:
    """Keeps what a run tells; another run tells it as well, and once is enough.

    Warnings that Python itself puts into a list are kept there: programs that record
    their warnings look at the functions which take them.
    """

    def __init__(self) -> None:
        self._printed, self._noted = io.StringIO(), io.StringIO()
        self._warned: list[tuple[Any, ...]] = []
        self._logged: list[tuple[logging.Logger, logging.LogRecord]] = []

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep what this thread tells."""
        printed = contextlib.redirect_stdout(self._printed)
        noted = contextlib.redirect_stderr(self._noted)
        with printed, noted, self._warnings_kept(), self.logs_kept():
            yield

    @property
    def logged(self) -> list[tuple[str, int, str]]:
        """Names of loggers, levels and texts of what was logged."""
        return [
            (one.name, record.levelno, str(record.msg)) for one, record in self._logged
        ]

    def show(self) -> None:
        """Tell what was kept."""
        sys.stdout.write(self._printed.getvalue())
        sys.stderr.write(self._noted.getvalue())
        for warning in self._warned:
            warnings.showwarning(*warning)
        for logger, record in self._logged:
            logger.callHandlers(record)

    @contextlib.contextmanager
    def _warnings_kept(self) -> Iterator[None]:
        before = warnings.showwarning
        if before is _SHOW_ORIGINAL:
            yield
            return
        warnings.showwarning = lambda *warning: self._warned.append(warning)
        try:
            yield
        finally:
            warnings.showwarning = before

    @contextlib.contextmanager
    def logs_kept(self) -> Iterator[None]:
        """Keep what this thread logs."""
        original = logging.Logger.callHandlers
        thread = threading.get_ident()

        def keep(logger: logging.Logger, record: logging.LogRecord) -> None:
            if threading.get_ident() == thread:
                self._logged.append((logger, record))
            else:
                original(logger, record)

        hidden: Any = logging.Logger
        hidden.callHandlers = keep
        try:
            yield
        finally:
            hidden.callHandlers = original


@dataclass(frozen=True)
class Written:
    """An object that is written.

    Attributes:
        obj: The object.
        key: What is written of a dict; ABSENT where all may be.
    """

    obj: Any
    key: Any = ABSENT


_BY_KEY: Final = (dict.__setitem__, OrderedDict.__setitem__, discard_key)


def written_by(mock: Mock, fetched: list[Any]) -> Iterator[Written]:
    """Yield what a hit writes to beside what it makes.

    A library keeps state in its modules: programs that change it hold no reference.

    Args:
        mock: Effects of the record.
        fetched: What its guard program has returned for them.
    """
    env = Environment(fetched, ())
    for step in mock.steps:
        if isinstance(step, Call) and isinstance(step.target, (Constant, Fetched)):
            obj = step.target.build(env)
            key = step.parts[0] if step.function in _BY_KEY else None
            if isinstance(key, Constant) and is_scalar(key.value):
                yield Written(obj, key.value)
            elif not is_scalar(obj):
                yield Written(obj)


def warned_to() -> Iterator[Written]:
    """Yield what warnings of Python are put into."""
    module: Any = warnings
    yield Written(module.onceregistry)
    taking = getattr(module._showwarnmsg_impl, "__self__", None)
    if type(taking) is list:
        yield Written(taking)
