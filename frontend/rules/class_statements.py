"""Owns class statements: their body, the class that they make, its first lookups.

A class that the run makes is internal, although classes are told apart by identity:
each run makes another one, so no record may hold it, and nothing that is found in its
own namespace needs a guard.
"""

from __future__ import annotations

import abc
import types
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import NativeCall
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.names import cell_node, load_global
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import cell_value, read_all, read_item
from magweld.frontend.state.mro import is_class
from magweld.frontend.state.nodes import Kind

# Metaclasses whose own code does nothing beside making the class.
_METACLASSES: Final = (type, abc.ABCMeta)


def load_build_class(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_BUILD_CLASS: pushes the function that makes a class of a body."""
    namespace = observer.frame.f_builtins
    graph = observer.session.graph
    graph.constant(namespace)
    read_item(graph, namespace, "__build_class__")


def build_class(observer: Observer, call: NativeCall) -> None:
    """`__build_class__`: runs the body, then calls the metaclass."""
    body, _, *bases = call.args
    register_function(observer.session, body)
    _expect_class(observer, bases, call.kwargs.get("metaclass", type))


def make_class(observer: Observer, call: NativeCall) -> None:
    """`type(name, bases, namespace)`."""
    _, bases, namespace = call.args[-3:]
    graph = observer.session.graph
    read_all(graph, bases)
    read_all(graph, namespace)
    given = call.args[0] if len(call.args) > 3 else type
    _expect_class(observer, list(bases), given)


def _expect_class(observer: Observer, bases: list[Any], given: Any) -> None:
    graph = observer.session.graph
    kinds = [given, *(type(base) for base in bases)]
    if not all(map(is_class, bases)) or any(kind not in _METACLASSES for kind in kinds):
        raise StopRecordingError("native-class", "a class with a metaclass or no class")
    for base in bases:
        _register(observer, note_class(graph, base, "__init_subclass__"))
    observer.constructing = abc.ABCMeta if abc.ABCMeta in kinds else type
    _register(observer, note_class(graph, observer.constructing, "__new__"))
    observer.after = _own_top


def _register(observer: Observer, method: Any) -> None:
    # The interpreter calls it with a class that nobody has seen yet.
    if type(method) in (staticmethod, classmethod):
        function = method.__func__
        if type(function) is types.FunctionType:
            observer.session.graph.constant(function)
            register_function(observer.session, function)


def _own_top(observer: Observer, stack: list[Any]) -> None:
    observer.constructing = None
    observer.session.graph.own_class(stack[-1])


def _namespace(observer: Observer) -> Any:
    namespace = observer.frame.f_locals
    observer.session.graph.adopt(namespace)
    if type(namespace) is not dict:
        raise StopRecordingError("opcode", "a class body without a dict")
    return namespace


def load_name(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_NAME: the namespace of the class, then globals and builtins."""
    _load(observer, row, _namespace(observer), None)


def load_class_deref(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_CLASSDEREF of 3.11: the namespace of the class, then a closure variable."""
    _load(observer, row, _namespace(observer), cell_node)


def load_from_dict(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_FROM_DICT_OR_GLOBALS and LOAD_FROM_DICT_OR_DEREF of 3.12."""
    closure = row.opname.endswith("DEREF")
    _load(observer, row, stack[-1], cell_node if closure else None)


def _load(observer: Observer, row: Row, namespace: Any, find_cell: Any) -> None:
    graph = observer.session.graph
    if row.argval in namespace:
        read_item(graph, namespace, row.argval)
    elif find_cell is not None:
        node = find_cell(observer, row)
        graph.read(node, Kind.CELL, None, cell_value(node.obj))
    else:
        load_global(observer, row, [])


def store_name(observer: Observer, row: Row, stack: list[Any]) -> None:
    """STORE_NAME, DELETE_NAME, SETUP_ANNOTATIONS: the namespace is the run's own."""
    _namespace(observer)
