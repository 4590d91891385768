"""Owns what running a Python function reads: code, defaults, closure, its class."""

from __future__ import annotations

import os
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import read_all
from magweld.frontend.state.mro import ABSENT, find_in_mro
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

_ASYNC: Final = CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR


def register_function(session: Session, function: Any) -> None:
    """Record what a call of a Python function reads of the function object."""
    if id(function) in session.registered:
        return
    if type(function) is not FunctionType:
        raise StopRecordingError("unknown-function", type(function).__qualname__)
    graph = session.graph
    node = graph.require(function)
    session.registered.add(id(function))
    code = function.__code__
    if code.co_flags & _ASYNC:
        raise StopRecordingError("opcode", f"async function {code.co_qualname}")
    graph.constant(function.__globals__)
    if not node.constant:
        # Another function may have the same code and other globals.
        graph.read(node, Kind.FIELD, "__globals__", function.__globals__)
    graph.read(node, Kind.CODE, None, code)
    _read_tuple(graph, function, Kind.DEFAULTS, function.__defaults__)
    _read_tuple(graph, function, Kind.KWDEFAULTS, function.__kwdefaults__)
    for index, cell in enumerate(function.__closure__ or ()):
        graph.read(node, Kind.CLOSURE, index, cell)


def _read_tuple(graph: RefGraph, function: Any, kind: Kind, values: Any) -> None:
    graph.read(graph.require(function), kind, None, values)
    if values is not None:
        read_all(graph, values)


def admit_special(session: Session, function: Any, receiver: Any) -> None:
    """Explain a function that native code called: a method of its first argument.

    Raises:
        StopRecordingError: It is none, so nothing observed has called it.
    """
    name = function.__name__ if type(function) is FunctionType else ""
    if receiver is not NULL and name and session.graph.find(receiver) is not None:
        found = find_in_mro(type(receiver), name)
        if found is function or _getter(found) is function:
            note_class(session.graph, type(receiver), name)
            session.graph.constant(function)
            return
    raise StopRecordingError("unknown-function", name or type(function).__qualname__)


def _getter(found: Any) -> Any:
    return found.fget if type(found) is property else ABSENT


def special_method(observer: Observer, obj: Any, name: str) -> Any:
    """Return the special method that an operator will use.

    Returns:
        A Python function, which is then registered; a native method; or ABSENT.
    """
    method = note_class(observer.session.graph, type(obj), name)
    if type(method) is FunctionType:
        register_function(observer.session, method)
    return method


def is_python(method: Any) -> bool:
    """Return whether a special method runs as observed Python code."""
    return type(method) is FunctionType


def is_of_library(session: Session, code: CodeType) -> bool:
    """Return whether code belongs to Python or to torch."""
    filename = code.co_filename
    if filename.startswith(session.operators.library):
        return True
    return filename.startswith(_STDLIB) and "site-packages" not in filename


_STDLIB: Final = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
