"""Owns advancing iterators: those of the run, and those from before it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.rules.protocols import ITERATORS, advance
from magweld.frontend.state.iterators import (
    COMPOSED,
    CONTENT,
    PEEKABLE,
    changing_content,
    content_of,
    parts_of,
    peek,
)
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.nodes import Kind, Node
from magweld.frontend.state.values import is_scalar


def check_iterator(observer: Observer, iterator: Any, used: bool = True) -> None:
    """Record what the next item of an iterator depends on.

    Args:
        observer: Of the frame that advances it.
        used: Whether the program looks at the item.

    Raises:
        StopRecordingError: It was made before the run, and is not of a kind that can
            be looked into.
    """
    kind = type(iterator)
    if kind in ITERATORS or kind.__module__ == "itertools":
        node = observer.session.graph.require(iterator)
        if node.owned:
            advance(observer.session.graph, iterator)
        else:
            _read_next(observer, node, used, Counter())
            observer.session.graph.changes(node)
            observer.session.graph.advances.append(node)
    elif not is_python(special_method(observer, iterator, "__next__")):
        raise StopRecordingError("opaque-iterator", kind.__qualname__)


def _read_next(
    observer: Observer, node: Node, used: bool, pending: Counter[int]
) -> bool:
    """Record the next item of an iterator; return whether there is one.

    Args:
        observer: Of the frame that advances it.
        used: Whether the program looks at the item.
        pending: How often the current instruction advances each iterator.
    """
    graph, iterator = observer.session.graph, node.obj
    if node.owned or type(iterator) not in (PEEKABLE | COMPOSED):
        raise StopRecordingError("opaque-iterator", type(iterator).__qualname__)
    number = graph.steps[id(iterator)]
    graph.steps[id(iterator)] += 1
    if type(iterator) in COMPOSED:
        return _read_parts(observer, node, number, pending)
    content = graph.find(content_of(iterator))
    if content is not None and (content.owned or content.written or content.appended):
        raise StopRecordingError("opaque-iterator", "its container was changed")
    try:
        item = peek(iterator, pending[id(iterator)])
    except RuntimeError as error:
        raise StopRecordingError("opaque-iterator", str(error)) from error
    pending[id(iterator)] += 1
    if number == 0:
        # What the run writes must not be what is walked over, unless it was so here.
        graph.read(node, Kind.PART, CONTENT, changing_content(iterator))
    if item is ABSENT or (is_scalar(item) and not used):
        graph.read(node, Kind.MORE, number, item is not ABSENT)
    else:
        graph.read(node, Kind.NEXT, number, item)
    return item is not ABSENT


def _read_parts(
    observer: Observer, node: Node, number: int, pending: Counter[int]
) -> bool:
    graph, parts = observer.session.graph, parts_of(node.obj)
    for index, part in enumerate(parts):
        if type(part) is bool:
            graph.read(node, Kind.PART, index, part)
        elif type(part) is int:
            # The counter of `enumerate` has moved since the beginning of the run.
            graph.read(node, Kind.PART, index, part - number)
        else:
            graph.read(node, Kind.PART, index, part)
            more = _read_next(observer, graph.require(part), True, pending)
            if not more and parts[-1] is True:
                _read_strict_end(observer, node, index, pending)
            if not more:
                return False
    return True


def _read_strict_end(
    observer: Observer, node: Node, ended: int, pending: Counter[int]
) -> None:
    """Record that all parts of a strict `zip` end together."""
    graph, iterators = observer.session.graph, parts_of(node.obj)[:-1]
    more = ended > 0
    for index, part in enumerate(iterators[1:], 1):
        graph.read(node, Kind.PART, index, part)
        more = more or _read_next(observer, graph.require(part), True, pending)
    if more:
        raise StopRecordingError("opaque-iterator", "zip of different lengths")
