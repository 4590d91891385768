"""Annotations of effects outside of the program: what it prints, warns and logs.

A hit repeats them after its graph, with the texts of the recorded run: whatever the
texts were made of is guarded.
"""

from __future__ import annotations

import _warnings
import builtins
import dataclasses
import io
import logging
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Entries, NativeCall
from magweld.frontend.monitor.hooks import sites_of
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.session.session import Session
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import builtin_base
from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.mro import find_in_mro, is_class, is_immutable
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.steps import Call, Constant
from magweld.frontend.state.values import is_identity, is_scalar

# Native code that takes them neither looks at the program nor raises. So nobody sees
# whether a write of the program was before or behind it.

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
    if kind is io.StringIO:
        return True
    buffer = stream.buffer
    return type(buffer.raw if type(buffer) in _BUFFERS else buffer) in _BYTES


def _is_overridden(obj: Any, base: type) -> bool:
    own = instance_dict(obj) or {}
    if not own.keys().isdisjoint(_OVERRIDDEN):
        return True
    names = [name for name in _OVERRIDDEN if hasattr(base, name)]
    return any(find_in_mro(type(obj), n) is not find_in_mro(base, n) for n in names)


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


def _read_text(observer: Observer, obj: Any) -> str:
    """Return the text of an object whose text follows from what is guarded."""
    _read_plain(observer, obj)
    return str(obj)


def _read_plain(observer: Observer, obj: Any) -> None:
    nested = builtin_base(obj) in _TEXTUAL and is_immutable(type(obj))
    identity = is_identity(obj) and is_immutable(type(type(obj)))
    if not (nested or identity or is_scalar(obj)):
        raise StopRecordingError("opaque-value", type(obj).__qualname__)
    read_value(observer, obj)
    for item in obj if nested else ():
        _read_plain(observer, item)
    for item in obj.values() if type(obj) is dict else ():
        _read_plain(observer, item)


_TEXTUAL: Final = (list, tuple, dict)


def _check_untouched(observer: Observer, *namespaces: types.ModuleType) -> None:
    # Where the text goes is decided again by the hit, after the program's own writes.
    for namespace in namespaces:
        if id(namespace.__dict__) in observer.session.graph.snapshots:
            raise StopRecordingError("native-call", f"redirected {namespace.__name__}")


def _repeat(
    observer: Observer, step: Call, is_plain: Callable[..., bool], *about: Any
) -> None:
    """Have a hit repeat what leaves the program, which no branch can hold.

    A hit does so behind its graph. Where what takes it is plain, and this is guarded,
    nobody notices. Elsewhere the run must write nothing, and no handler of the program
    must be waiting for an exception.

    Args:
        step: What repeats it.
        is_plain: Tells whether what takes it neither raises nor looks at the program.
    """
    session = observer.session
    graph = session.graph
    function = graph.constant(step.function)
    graph.changes(function)
    if is_plain(*about):
        graph.read(graph.constant(is_plain), Kind.QUERY, about, True)
    else:
        _require_order(session, step.function.__name__)
    step = dataclasses.replace(step, where=str(function.changed or ""))
    session.effects.append(step)


def _require_order(session: Session, name: str) -> None:
    """Refuse an effect whose place among the writes of the run may be seen."""
    stop = StopRecordingError("native-call", f"{name}, in the order of the program")
    rows = [observer.previous for observer in session.active()]
    if any(row is not None and row.handlers for row in rows):
        raise stop
    trail = sites_of(session.active(), session.control)

    def check() -> None:
        if session.graph.is_written or session.operators.has_effects:
            session.trail = trail
            raise stop

    check()
    session.graph.checks.append(check)


def print_text(text: str, end: str) -> None:
    """Print a text again."""
    print(text, end=end)


def _print(observer: Observer, call: NativeCall) -> None:
    if call.kwargs.keys() - {"sep", "end", "flush"}:
        raise StopRecordingError("native-call", "print to a file")
    _check_untouched(observer, sys)
    for value in call.kwargs.values():
        read_value(observer, value)
    separator, end = call.kwargs.get("sep"), call.kwargs.get("end")
    text = (" " if separator is None else separator).join(
        [_read_text(observer, obj) for obj in call.args]
    )
    ending = "\n" if end is None else end
    step = Call(print_text, Constant(text), (Constant(ending),))
    _repeat(observer, step, prints_plainly, not (text + ending).isascii())
    observer.session.opaque_caller = observer  # the stream may be Python code


def warn_again(
    text: str,
    category: type[Warning],
    filename: str,
    line: int,
    namespace: dict[str, Any],
) -> None:
    """Warn again at the place of the recorded run."""
    registry = namespace.setdefault("__warningregistry__", {})
    module = namespace.get("__name__") or "<unknown>"
    warnings.warn_explicit(text, category, filename, line, module, registry)


def _warn(observer: Observer, call: NativeCall) -> None:
    names = ("message", "category", "stacklevel", "source")
    given = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
    message, category = given["message"], given.get("category") or UserWarning
    level = given.get("stacklevel", 1)
    known = type(message) is str and is_class(category) and type(level) is int
    if not known or given.get("source") is not None or given.keys() - set(names):
        raise StopRecordingError("native-call", "warn with an object")
    frame: types.FrameType | None = observer.frame
    for _ in range(level - 1):
        frame = None if frame is None else frame.f_back
    if frame is None or "importlib" in frame.f_code.co_filename:
        raise StopRecordingError("native-call", "warn from outside of the program")
    place = (frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    parts = tuple(map(Constant, (category, *place)))
    repeat_warning(observer, Call(warn_again, Constant(message), parts), category)
    # The hooks that show it may be Python code.
    observer.session.opaque_caller = observer


def repeat_warning(observer: Observer, step: Call, category: type[Warning]) -> None:
    """Have a hit warn as native code, or code that is not observed, is about to.

    Args:
        observer: Of the frame that calls it.
        step: What warns of the same at the same place.
        category: Class of the warning.

    Raises:
        StopRecordingError: What takes it may look at the program or raise.
    """
    _check_untouched(observer, warnings, sys)
    _repeat(observer, step, warns_plainly, category)


def log_again(
    logger: logging.Logger,
    level: int,
    text: str,
    args: tuple[Any, ...],
    place: tuple[str, int, str],
) -> None:
    """Log a message again at the place of the recorded run."""
    filename, line, function = place
    name = logger.name
    record = logger.makeRecord(name, level, filename, line, text, args, None, function)
    logger.handle(record)


def _log(observer: Observer, call: NativeCall) -> None:
    """`Logger._log`, which writes what was found to be of enough importance."""
    if call.kwargs or len(call.args) != 4 or type(call.args[2]) is not str:
        raise StopRecordingError("native-call", "log with an object")
    logger, level, text, args = call.args
    graph = observer.session.graph
    for name in ("makeRecord", "handle", "findCaller"):
        if note_class(graph, type(logger), name) is not vars(logging.Logger)[name]:
            kind = type(logger).__qualname__
            raise StopRecordingError("native-call", f"{kind}.{name}")
    _check_untouched(observer, logging, sys)
    _read_plain(observer, args)
    graph.hold(logger)
    frame: types.FrameType | None = observer.frame
    while frame is not None and frame.f_code.co_filename == _LOGGING:
        frame = frame.f_back
    if frame is None:
        raise StopRecordingError("native-call", "log from outside of the program")
    place = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    parts = tuple(map(Constant, (level, text, tuple(args), place)))
    step = Call(log_again, Constant(logger), parts)
    _repeat(observer, step, logs_plainly, logger)


_LOGGING: Final = logging.Logger._log.__code__.co_filename

EFFECTS: Final[Entries] = (
    (builtins.print, _print),
    (_warnings.warn, _warn),
    (logging.Logger._log, _log),
)
