"""Owns the silence of a run: what it prints, warns and logs is kept."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, Final

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
