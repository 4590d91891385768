"""Annotations of regular expressions: patterns and matches, which never change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entry,
    NativeCall,
    Result,
    Use,
)
from magweld.frontend.rules import attributes
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.values import is_scalar

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer

_OF_PATTERN: Final = "match search fullmatch findall split"
_REPLACING: Final = "sub subn"
_OF_MATCH: Final = "group groups groupdict start end span"
_READ: Final = Annotation((Use.KEEP,), rest=Use.VALUE, result=Result.FRESH)


def _apply(observer: Observer, call: NativeCall) -> None:
    """What a pattern finds follows from the pattern itself and from the text."""
    pattern, *values = call.args
    if pattern.flags & re.LOCALE:
        raise StopRecordingError("native-call", f"{call.name} by locale")
    if not all(map(is_scalar, (*values, *call.kwargs.values()))):
        # Arrays and subclasses of strings hold text as well.
        raise StopRecordingError("native-call", call.name)
    graph = observer.session.graph
    if graph.require(pattern).external:
        graph.hold(pattern)
    for value in (*values, *call.kwargs.values()):
        read_value(observer, value)
    observer.after = attributes.adopt_top


def _replace(observer: Observer, call: NativeCall) -> None:
    """Replacing text; a template with groups is worked out by Python code of `re`."""
    template = call.args[1] if len(call.args) > 1 else call.kwargs.get("repl")
    if type(template) is not str or "\\" in template:
        raise StopRecordingError("native-call", call.name)
    _apply(observer, call)


def _methods(kind: type, names: str, entry: Entry) -> tuple[tuple[Any, Entry], ...]:
    return tuple((vars(kind)[name], entry) for name in names.split())


REGULAR: Final[tuple[tuple[Any, Entry], ...]] = (
    *_methods(re.Pattern, _OF_PATTERN, _apply),
    *_methods(re.Pattern, _REPLACING, _replace),
    *_methods(re.Match, _OF_MATCH, _READ),
)
