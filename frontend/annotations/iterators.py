"""Annotations of iterators: the classes that make them, generators, views."""

from __future__ import annotations

import builtins
import functools
import itertools
import types
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Result,
    Rule,
    Use,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import attributes, natives
from magweld.frontend.rules.protocols import iterate, read_through
from magweld.frontend.state.contents import builtin_base, elements
from magweld.frontend.state.values import is_scalar


def _iterate_all(observer: Observer, arguments: tuple[Any, ...]) -> None:
    for argument in arguments:
        if not is_scalar(argument):
            iterate(observer, argument)


def _iterables(observer: Observer, call: NativeCall) -> None:
    """A class of iterators whose arguments are iterables or scalars."""
    _iterate_all(observer, (*call.args, *call.kwargs.values()))
    observer.after = attributes.bear_top


def _nested(observer: Observer, call: NativeCall) -> None:
    """`chain.from_iterable`: elements of the argument are iterated over, unobserved."""
    *_, source = call.args
    _iterate_elements(observer, source)
    observer.after = attributes.bear_top


def _iterate_elements(observer: Observer, source: Any) -> None:
    iterate(observer, source)
    if builtin_base(source) not in (None, dict):
        _iterate_all(observer, tuple(elements(source)))
    elif type(source) is not types.GeneratorType:
        read_through(observer, source)


def _callback(function: int, iterables: slice, keyword: str = "") -> Rule:
    """Return the rule of an iterator that calls its argument number `function`."""

    def rule(observer: Observer, call: NativeCall) -> None:
        sources = call.args[iterables]
        _iterate_all(observer, sources)
        given = call.args[function] if function < len(call.args) else None
        callback = call.kwargs.get(keyword, given)
        if callback is None or natives.prepare_callback(observer, callback):
            natives.read_for_callbacks(observer, sources)
        observer.after = attributes.bear_top

    return rule


def _starmap(observer: Observer, call: NativeCall) -> None:
    function, source = call.args
    _iterate_elements(observer, source)
    if natives.prepare_callback(observer, function):
        natives.read_for_callbacks(observer, (source,))
    observer.after = attributes.bear_top


def _compress(observer: Observer, call: NativeCall) -> None:
    _iterate_all(observer, call.args)
    natives.read_for_callbacks(observer, call.args[1:])
    observer.after = attributes.bear_top


def _reduce(observer: Observer, call: NativeCall) -> None:
    """`functools.reduce`: a callback, an iterable, optionally where to start."""
    iterate(observer, call.args[1])
    if natives.prepare_callback(observer, call.args[0]):
        natives.read_for_callbacks(observer, call.args[1:])
    observer.after = attributes.adopt_top


def _resume(observer: Observer, call: NativeCall) -> None:
    """Methods of generators; the generator's own frame is observed."""
    graph = observer.session.graph
    node = graph.require(call.args[0])
    graph.changes(node)
    if not node.owned:
        raise StopRecordingError("opaque-iterator", "generator")
    observer.after = attributes.adopt_top


_ITERABLES: Final[tuple[Callable[..., Any], ...]] = (
    itertools.chain,
    itertools.combinations,
    itertools.combinations_with_replacement,
    itertools.count,
    itertools.cycle,
    itertools.islice,
    itertools.pairwise,
    itertools.permutations,
    itertools.product,
    itertools.tee,
    itertools.zip_longest,
    builtins.enumerate,
    builtins.zip,
)
# They call their first argument with items of the others.
_MAPPING: Final = (
    *(itertools.takewhile, itertools.dropwhile, itertools.filterfalse),
    *(builtins.map, builtins.filter),
)
_CALLING: Final = _callback(0, slice(1, None))
_GENERATOR_METHODS: Final = ("send", "throw", "close", "__next__", "__iter__")

ITERATOR_RULES: Final[Entries] = (
    *((kind, _iterables) for kind in _ITERABLES),
    (itertools.chain.__dict__["from_iterable"], _nested),
    (itertools.compress, _compress),
    (itertools.repeat, Annotation(rest=Use.KEEP, result=Result.NEW)),
    (itertools.accumulate, _callback(1, slice(1), keyword="func")),
    (itertools.groupby, _callback(1, slice(1), keyword="key")),
    *((kind, _CALLING) for kind in _MAPPING),
    (itertools.starmap, _starmap),
    (functools.reduce, _reduce),
    *((vars(types.GeneratorType)[name], _resume) for name in _GENERATOR_METHODS),
)
