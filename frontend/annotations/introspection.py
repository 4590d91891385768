"""Annotations of what the standard library asks of the interpreter for itself."""

from __future__ import annotations

import _thread
import abc
import builtins
import collections
import contextlib
import copy
import dataclasses
import functools
import reprlib
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.annotations.model import (
    Annotation,
    Entry,
    NativeCall,
    Result,
    Rule,
    Use,
)
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.rules import attributes, class_statements
from magweld.frontend.rules.functions import note_class
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.contents import (
    CONTAINERS,
    elements,
    namespace_of,
    read_all,
)
from magweld.frontend.state.mro import ABSENT, is_immutable, mro
from magweld.frontend.state.values import is_identity, is_scalar

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def _only_in(*modules: types.ModuleType) -> Rule:
    """Return the rule of a function whose result only these modules may see.

    What they do with it does not show: they tell objects, threads or handled
    exceptions apart for as long as one call of theirs lasts.
    """
    files = tuple(module.__file__ for module in modules)

    def rule(observer: Observer, call: NativeCall) -> None:
        if observer.code.co_filename not in files:
            raise StopRecordingError("native-call", call.name)
        observer.after = attributes.adopt_top

    return rule


_HOOKS: Final = (
    *("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__"),
    *("__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__"),
)
_DEFAULTS: Final = (
    object.__reduce__,
    object.__reduce_ex__,
    object.__dict__.get("__getstate__", ABSENT),
    ABSENT,
)


def _copy(deep: bool) -> Callable[[Observer, NativeCall], None]:
    """Return the rule of `copy.copy` or `copy.deepcopy`, which run unobserved."""

    def rule(observer: Observer, call: NativeCall) -> None:
        if len(call.args) != 1 or call.kwargs:
            raise StopRecordingError("native-call", call.name)
        _read_parts(observer, call.args[0], deep, set())
        observer.session.quiet = observer
        observer.after = attributes.adopt_top

    return rule


def _read_parts(observer: Observer, obj: Any, deep: bool, seen: set[int]) -> None:
    if is_scalar(obj) or is_identity(obj) or id(obj) in seen:
        return
    seen.add(id(obj))
    graph = observer.session.graph
    if type(obj) in CONTAINERS:
        read_all(graph, obj)
        parts = elements(obj)
    else:
        parts = _fields(observer, obj)
    for part in parts if deep else ():
        _read_parts(observer, part, deep, seen)


def _fields(observer: Observer, obj: Any) -> list[Any]:
    graph = observer.session.graph
    kind = type(obj)
    native = next(base for base in mro(kind) if is_immutable(base))
    hooks = [note_class(graph, kind, name) for name in _HOOKS]
    slots = any("__slots__" in vars(base) for base in mro(kind))
    namespace = namespace_of(graph, obj)
    if native is not object or slots or namespace is None:
        raise StopRecordingError("native-call", f"copy of {kind.__qualname__}")
    if any(hook not in _DEFAULTS for hook in hooks):
        raise StopRecordingError("native-call", f"copy of {kind.__qualname__}")
    read_all(graph, namespace.obj)
    return elements(namespace.obj)


def _namedtuple(observer: Observer, call: NativeCall) -> None:
    """`collections.namedtuple`: a new class that follows from its arguments."""
    for argument in (*call.args, *call.kwargs.values()):
        read_value(observer, argument)

    def own(observer: Observer, stack: list[Any]) -> None:
        observer.session.graph.own_class(stack[-1])

    observer.after = own


def _process_class(observer: Observer, call: NativeCall) -> None:
    """What the decorator `dataclass` does to a class that the run has made."""
    cls = call.args[0]
    graph = observer.session.graph
    if graph.require(cls).external:
        raise StopRecordingError("class-write", cls.__qualname__)
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        note_class(graph, cls, name)


def _globals(observer: Observer, call: NativeCall) -> None:
    """`globals()`: the namespace of the function that is running."""
    observer.session.graph.constant(observer.frame.f_globals)


INTROSPECTION: Final[tuple[tuple[Any, Entry], ...]] = (
    (builtins.id, _only_in(copy, dataclasses, reprlib)),
    (_thread.get_ident, _only_in(dataclasses, reprlib, functools)),
    (sys.exc_info, _only_in(contextlib)),
    (builtins.globals, _globals),
    (copy.copy, _copy(deep=False)),
    (copy.deepcopy, _copy(deep=True)),
    (builtins.__build_class__, class_statements.build_class),
    (vars(collections)["namedtuple"], _namedtuple),
    (vars(dataclasses)["_process_class"], _process_class),
    (type.__new__, class_statements.make_class),
    (type.__init__, Annotation(rest=Use.KEEP)),
    (vars(type)["__prepare__"], Annotation(rest=Use.KEEP, result=Result.FRESH)),
    (vars(object)["__init_subclass__"], Annotation(rest=Use.KEEP)),
    (vars(abc)["_abc_init"], Annotation(rest=Use.KEEP)),
    (sys.intern, Annotation()),
    (slice.indices, Annotation()),
    (range.index, Annotation()),
    (range.count, Annotation()),
)
