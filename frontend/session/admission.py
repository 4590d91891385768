"""Owns what a run begins with, and what explains a frame that begins in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Annotation, Result, Use
from magweld.frontend.monitor.hooks import Resumed
from magweld.frontend.monitor.observer import Observer, call_entry
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.rules.functions import (
    admit_special,
    is_of_library,
    register_function,
)
from magweld.frontend.state.mro import (
    find_in_mro,
    is_class,
    name_of_class,
)
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_equal_to_itself_alone

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


# Code of the front end itself is not part of the program, but for the call of it.
OWN_CODE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
ENTRY: Final = call_entry.__code__
# What they return is known, or native code alone sees it.
_READS_NOTHING: Final = (
    Annotation(rest=Use.KEEP),
    Annotation(rest=Use.KEEP, result=Result.ADDRESS),
)


def is_own(code: CodeType) -> bool:
    """Return whether code belongs to the front end."""
    return code.co_filename.startswith(OWN_CODE) and code is not ENTRY


def is_opaque(session: Session, frame: FrameType) -> bool:
    """Return whether a frame runs an annotated function that reads nothing.

    Native code may call one that the program does not name, e.g. a hash.
    """
    function = session.reader.function(frame)
    return session.annotations.find(function) in _READS_NOTHING


def explain_frame(session: Session, frame: FrameType, function: Any) -> None:
    """Register the function of a frame, and an instance that it is the first to see.

    Raises:
        StopRecordingError: Nothing that was observed has called it.
    """
    parent = session.current
    if parent is not None and parent.constructing is not None:
        # `C(...)` makes the instance in native code; `__init__` gets it.
        instance = _first_argument(session, frame)
        if type(instance) is parent.constructing:
            _adopt_made(session.graph, instance)
    if id(function) not in session.registered:
        if parent is not None and parent.awaits_operator:
            # A native function runs Python code, but is no operator.
            raise StopRecordingError("native-call", parent.awaits_operator)
        if session.graph.find(function) is None:
            admit_special(session, function, _first_argument(session, frame))
        register_function(session, function)


def connect(session: Session, observer: Observer, frame: FrameType) -> None:
    """Tell the observer of a frame that begins about its caller."""
    parent = session.current
    if parent is None:
        return
    if parent.calls_native:
        observer.native_caller = True
        _adopt_delivered(session, frame, parent)
    if is_of_library(session, frame.f_code):
        observer.anchor = parent.where()


def _adopt_delivered(session: Session, frame: FrameType, parent: Observer) -> None:
    # Pairs that an iterator has made for a callback; their elements were read.
    for index in range(frame.f_code.co_argcount):
        value = session.reader.slot(frame, index)
        if type(value) is tuple:
            session.graph.adopt(value)
        elif parent.constructing is not None and type(value) is parent.constructing:
            # `__set_name__` gets the class as well
            _adopt_made(session.graph, value)


def _adopt_made(graph: RefGraph, obj: Any) -> None:
    if is_class(obj):
        graph.own_class(obj)
    elif type(find_in_mro(type(obj), "__new__")) is staticmethod:
        # A function of Python may have kept it.
        graph.adopt(obj)
    elif graph.find(obj) is None:
        graph.bear(obj)


def _first_argument(session: Session, frame: FrameType) -> Any:
    code = frame.f_code
    if code.co_argcount == 0:
        return NULL
    value = session.reader.slot(frame, 0)
    if type(value) is CellType and code.co_varnames[0] in code.co_cellvars:
        return value.cell_contents
    return value


def check_classes(values: Iterable[Any]) -> None:
    """Refuse arguments whose classes are told apart by code of the program.

    Raises:
        StopRecordingError: There is one.
    """
    for cls in map(type, values):
        if not is_equal_to_itself_alone(cls):
            raise StopRecordingError("opaque-value", name_of_class(cls))


def begin_call(
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Register the program and the arguments of a call of it."""
    graph = session.graph
    graph.constant(function).name = _root_name(function)
    graph.adopt(args)
    graph.adopt(kwargs)
    for index, value in enumerate(args):
        graph.root(value, f"args[{index}]")
    for name, value in kwargs.items():
        graph.root(value, name)


def begin_rest(session: Session, function: FunctionType, resumed: Resumed) -> None:
    """Register the state of a program that goes on."""
    graph = session.graph
    graph.goes_on = True
    for obj in (function, *resumed.made):
        if type(obj) is FunctionType:
            # Whatever is read of a function was read when it began.
            graph.constant(obj)
            graph.constant(obj.__globals__)
            session.registered.add(id(obj))
        else:
            graph.adopt(obj)
    for name, value in zip(resumed.names, resumed.values, strict=True):
        graph.root(value, name)
    graph.adopt(resumed.given)


def _root_name(function: Any) -> str:
    if type(function) in (FunctionType, MethodType):
        return str(function.__name__)
    return "self"
