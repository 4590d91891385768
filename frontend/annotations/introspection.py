"""Annotations of what the standard library asks of the interpreter for itself."""

from __future__ import annotations

import _thread
import abc
import builtins
import collections
import contextlib
import copy
import cProfile
import dataclasses
import enum
import functools
import reprlib
import sys
import types
import typing
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Result,
    Rule,
    Use,
    refused,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import attributes, class_statements
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.attributes import note_class


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


def _number_only_in(*modules: types.ModuleType) -> Rule:
    """Return the same of a function whose result is a number of this process alone.

    No recording ends within a call that has one: behind the break a hit would have the
    number of the recorded run.
    """
    only = _only_in(*modules)

    def rule(observer: Observer, call: NativeCall) -> None:
        if not _is_within_copy(observer):
            raise StopRecordingError("native-call", call.name)
        only(observer, call)
        observer.stays_whole = True

    return rule


def _is_within_copy(observer: Observer) -> bool:
    """Return whether what a copy notes ends with it; true of code that copies nothing.

    The program sees what is noted in a memo of its own.
    """
    frames = observer.session.active()
    within = [one.code.co_filename == copy.__file__ for one in frames]
    if not any(within):
        return True
    outermost = within.index(True)
    caller, copies = frames[outermost - 1], frames[outermost]
    row = caller.previous
    takes_one = row is not None and row.opname == "CALL" and row.arg == 1
    return caller.links_to(copies) and copies.code is _DEEPCOPY and takes_one


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


def _look_at_frames(observer: Observer, call: NativeCall) -> None:
    """`sys._getframe`: frames that are split are others before and behind a break."""
    if observer.code.co_filename in _ASK_FOR_GLOBALS:
        raise StopRecordingError("native-call", call.name)
    raise StopRecordingError("frame-access", call.name)


# Code of theirs looks at the globals of a frame, which are those of the program.
_ASK_FOR_GLOBALS: Final = tuple(
    module.__file__ for module in (collections, dataclasses, enum, typing)
)
_DEEPCOPY: Final = copy.deepcopy.__code__
# What shows the program its own frames must see those of every call.
_INSTALL: Final = refused("frame-access")
_PROFILER: Final = vars(cProfile.Profile.__base__)

INTROSPECTION: Final[Entries] = (
    (builtins.id, _number_only_in(copy, dataclasses, reprlib)),
    (_thread.get_ident, _number_only_in(dataclasses, reprlib, functools)),
    (sys.exc_info, _only_in(contextlib)),
    (builtins.globals, _globals),
    (builtins.__build_class__, class_statements.build_class),
    (vars(collections)["namedtuple"], _namedtuple),
    (vars(dataclasses)["_process_class"], _process_class),
    (type.__new__, class_statements.make_class),
    (type.__init__, Annotation(rest=Use.KEEP)),
    (vars(type)["__prepare__"], Annotation(rest=Use.KEEP, result=Result.FRESH)),
    (vars(object)["__init_subclass__"], Annotation(rest=Use.KEEP)),
    (vars(abc)["_abc_init"], Annotation(rest=Use.KEEP)),
    (sys._getframe, _look_at_frames),
    (sys._current_frames, _look_at_frames),
    (sys.settrace, _INSTALL),
    (sys.setprofile, _INSTALL),
    *((_PROFILER[name], _INSTALL) for name in ("enable", "disable")),
    (sys.intern, Annotation()),
    (slice.indices, Annotation()),
    (range.index, Annotation()),
    (range.count, Annotation()),
)
