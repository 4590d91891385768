"""Owns what becomes keys of dicts and elements of sets: tuples lie by their value."""

from __future__ import annotations

from _collections_abc import dict_keys
from collections.abc import Iterable
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import adopt_top
from magweld.frontend.state.contents import (
    builtin_base,
    elements,
    keys_of,
    read_key,
)
from magweld.frontend.state.values import is_scalar


def read_keys_among(observer: Observer, keys: Iterable[Any]) -> None:
    """Record that objects become keys of a dict or elements of a set."""
    for key in keys:
        read_key(observer.session.graph, key)


def take_keys(observer: Observer, source: Any, target: Any = None) -> None:
    """Record that what an iterable gives becomes keys, or elements of a set.

    Args:
        target: What takes it; None for what the instruction returns.
    """
    base = builtin_base(source)
    if base is not None:
        read_keys_among(observer, keys_of(source) if base is dict else elements(source))
    elif not is_scalar(source) and type(source) is not dict_keys:
        check_taken(observer, target)


def take_pairs(observer: Observer, source: Any, target: Any = None) -> None:
    """Record that the first parts of what an iterable gives become keys of a dict.

    Args:
        source: The iterable, no dict.
        target: What takes it; None for what the instruction returns.
    """
    if builtin_base(source) is None:
        check_taken(observer, target)
        return
    for pair in elements(source):
        if builtin_base(pair) is not None:
            read_keys_among(observer, elements(pair)[:1])


def check_taken(observer: Observer, target: Any) -> None:
    """Refuse tuples that an iterator gives: one may be gone as it equals another."""

    def check(observer: Observer, stack: list[Any]) -> None:
        if target is None:
            adopt_top(observer, stack)
        taken = stack[-1] if target is None else target
        graph = observer.session.graph
        for key in keys_of(taken) if builtin_base(taken) is dict else elements(taken):
            node = graph.find(key) if type(key) in (tuple, frozenset) else None
            if node is not None and not node.constant:
                raise StopRecordingError("opaque-key", "a tuple from an iterator")

    observer.after = check
