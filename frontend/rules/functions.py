"""Owns what running a Python function reads: code, defaults, closure, its class."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.state.class_writes import read_written_class
from magweld.frontend.state.contents import read_all
from magweld.frontend.state.mro import (
    ABSENT,
    find_after,
    find_in_mro,
    is_immutable,
    mro,
)
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.plans import ClassState
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_scalar

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

_ASYNC = 0x80 | 0x100 | 0x200  # CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR


def note_class(graph: RefGraph, cls: type, name: str, start: type | None = None) -> Any:
    """Record a class lookup and return what it found, unbound, or ABSENT.

    Args:
        graph: Where to record.
        cls: Class whose method resolution order is searched.
        name: Attribute.
        start: Search only behind this base, as `super` does.
    """
    # A class that has not changed since is known, unless reads mean more than guards.
    plain = graph.lifting is None and not graph.choices.merged and start is None
    if plain and name not in graph.class_names:
        known = graph.plans.noted.get((id(cls), name))
        if known is not None and known[0].stays():
            return known[1]
    value, made = _look_up(graph, cls, name, start)
    if plain and not made:
        graph.plans.noted[id(cls), name] = ClassState(cls), value
    return value


def _look_up(
    graph: RefGraph, cls: type, name: str, start: type | None
) -> tuple[Any, bool]:
    """Return what was found, and whether the run has made or written a class of it."""
    key = name if start is None else (start, name)
    value = find_in_mro(cls, name) if start is None else find_after(cls, start, name)
    made = [base for base in mro(cls) if _is_made(graph, base)]
    if made:
        for base in mro(cls):
            if base not in made:
                note_class(graph, base, name)
        graph.adopt(value)
    elif name in graph.class_names:
        return read_written_class(graph, cls, name, start), True
    elif not all(is_immutable(base) for base in mro(cls)):
        graph.read(graph.constant(cls), Kind.CLASS_ATTRIBUTE, key, value)
    if value is not ABSENT and not is_scalar(value) and graph.find(value) is None:
        graph.constant(value)
    return value, bool(made)


def _is_made(graph: RefGraph, cls: type) -> bool:
    node = graph.find(cls)
    return node is not None and not node.external


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
