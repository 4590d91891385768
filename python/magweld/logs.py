"""Owns the topics of the log, and what `MAGWELD_LOGS` and `MAGWELD_DEBUG` show of it.

Each topic is a logger of its own below `magweld`. Who has set up one of these loggers
gets nothing else; otherwise one handler writes what the variables ask for to stderr.
Errors that are expected of torch are not shown by its log.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Final

from magweld import env

_ROOT: Final = "magweld"
_ALL: Final = "all"
_HELP: Final = "help"
# Of `MAGWELD_DEBUG`: what the whole of magweld logs.
_DEBUG_LEVELS: Final = (logging.NOTSET, logging.INFO, logging.DEBUG, logging.DEBUG)


def topic(name: str) -> logging.Logger:
    """Return the logger of a topic.

    Raises:
        KeyError: There is no such topic.
    """
    assert env.LOG_TOPICS[name]
    return logging.getLogger(f"{_ROOT}.{name}")


@contextlib.contextmanager
def expected_errors() -> Iterator[None]:
    """Keep torch from logging what operators raise in runs without data.

    The caller tells it: a graph that does not run so is left to torch. Other threads
    are not concerned.
    """
    thread = threading.get_ident()

    def of_others(record: logging.LogRecord) -> bool:
        return threading.get_ident() != thread

    logger = logging.getLogger("torch._subclasses.fake_tensor")
    logger.addFilter(of_others)
    try:
        yield
    finally:
        logger.removeFilter(of_others)


def name_of(program: object) -> str:
    """Return what the log calls a program: a function's name, or that of a class."""
    # Nothing else may be asked for a name: it could run code of the user's.
    if isinstance(program, FunctionType | MethodType):
        return program.__qualname__
    return type(program).__qualname__


def show_logs() -> None:
    """Show what the environment asks for, unless the user has set up these loggers.

    It is asked again each time; nothing happens while the answer is the same.

    Raises:
        EnvironmentVariableError: `MAGWELD_DEBUG` is ill-formed.
    """
    root = logging.getLogger(_ROOT)
    asked = (env.LOGS.get(), env.DEBUG.get())
    known = [item for item in root.handlers if isinstance(item, _Handler)]
    if known and known[0].asked == asked:
        return
    for handler in known:
        handler.withdraw()
    if any(asked) and not any(map(_is_set_up, _loggers().values())):
        _Handler(asked).install()


def _loggers() -> Mapping[str, logging.Logger]:
    """Return the logger of each topic by name, and that of magweld under ""."""
    topics = {name: topic(name) for name in env.LOG_TOPICS}
    return {"": logging.getLogger(_ROOT), **topics}


def _is_set_up(logger: logging.Logger) -> bool:
    return bool(logger.handlers) or logger.level != logging.NOTSET


class _Handler(logging.Handler):
    """Writes lines to stderr, unless the root logger has handlers that get them, too.

    Attributes:
        asked: Topics and level that the environment asked for.
    """

    def __init__(self, asked: tuple[Sequence[str], int]) -> None:
        super().__init__()
        self.asked = asked
        form = "%(asctime)s.%(msecs)03d %(name)s: %(message)s"
        self.setFormatter(logging.Formatter(form, "%H:%M:%S"))
        topics, debug_level = asked
        everything = _ALL in topics
        self._levels = dict.fromkeys(env.LOG_TOPICS.keys() & topics, logging.DEBUG)
        if everything or debug_level:
            lowest = logging.DEBUG if everything else _DEBUG_LEVELS[debug_level]
            self._levels[""] = lowest

    def install(self) -> None:
        """Show what was asked for, and say what cannot be shown."""
        loggers = _loggers()
        loggers[""].addHandler(self)
        for name, level in self._levels.items():
            loggers[name].setLevel(level)
        topics, _ = self.asked
        if _HELP in topics and sys.stderr is not None:
            print(_help(), file=sys.stderr)
        known = (*env.LOG_TOPICS, _ALL, _HELP)
        unknown = [name for name in topics if name not in known]
        if unknown:
            offers = "; ".join(_offer(name, known) for name in unknown)
            message = f"{env.LOGS.name}: {offers}; known are {', '.join(known)}"
            warnings.warn(message, stacklevel=4)

    def withdraw(self) -> None:
        """Undo `install`."""
        loggers = _loggers()
        loggers[""].removeHandler(self)
        for name in self._levels:
            loggers[name].setLevel(logging.NOTSET)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line to what stderr is now."""
        if logging.getLogger().handlers or sys.stderr is None:
            return
        # A program may have closed it; that is no reason to end the program.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{self.format(record)}\n")


def _offer(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f", did you mean '{close[0]}'?" if close else ""
    return f"there is no topic '{name}'{hint}"


def _help() -> str:
    lines = [f"{env.LOGS.name}=TOPIC,TOPIC,... or {_ALL}; topics:"]
    return "\n".join(
        [*lines, *(f"  {name:<12}{doc}" for name, doc in env.LOG_TOPICS.items())]
    )
