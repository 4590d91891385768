"""Owns attribute writes: STORE_ATTR, DELETE_ATTR, and what they go through."""

from __future__ import annotations

import functools
import types
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import NativeCall
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import expect_operator, see_through
from magweld.frontend.rules.functions import (
    is_python,
    register_function,
    special_method,
)
from magweld.frontend.state.attributes import (
    before_class_write,
    before_slot_write,
    namespace_of,
    note_class,
    read_written_class,
)
from magweld.frontend.state.contents import Extent, before_write, read_item, slot_value
from magweld.frontend.state.lookup import is_data_descriptor
from magweld.frontend.state.mro import is_class
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph


def store_attribute(observer: Observer, row: Row, stack: list[Any]) -> None:
    """STORE_ATTR: the object is on top, the value below."""
    write_attribute(observer, stack[-1], row.argval, "__setattr__")


def delete_attribute(observer: Observer, row: Row, stack: list[Any]) -> None:
    """DELETE_ATTR."""
    write_attribute(observer, stack[-1], row.argval, "__delattr__")


# Built-in types repeat the generic setter in their own namespace.
_GENERIC_OWNERS: Final = (
    object,
    types.ModuleType,
    types.SimpleNamespace,
    types.FunctionType,
    BaseException,
    functools.partial,
)
_GENERIC_SETTERS: Final = frozenset(
    getattr(owner, hook)
    for owner in _GENERIC_OWNERS
    for hook in ("__setattr__", "__delattr__")
)


_CLASS_SETTERS: Final = (type.__setattr__, type.__delattr__)


def write_attribute(observer: Observer, obj: Any, name: str, hook: str) -> None:
    """Record what `obj.name = value` or `del obj.name` goes through."""
    graph = observer.session.graph
    obj = see_through(graph, obj)
    kind = type(obj)
    setter = special_method(observer, obj, hook)
    if is_python(setter):
        return
    if is_class(obj) and setter in _CLASS_SETTERS:
        write_class(observer, obj, name, hook == "__delattr__")
    elif setter in _GENERIC_SETTERS:
        write_generic(observer, obj, name, hook == "__delattr__")
    else:
        raise StopRecordingError("native-attribute", f"{kind.__name__}.{name}")


def write_class(observer: Observer, cls: Any, name: str, deletes: bool) -> None:
    """Record a write as `type.__setattr__` and `type.__delattr__` do it."""
    graph = observer.session.graph
    node = graph.require(cls)
    if not node.external:
        graph.changes(node)
        return  # the run has made the class
    if is_data_descriptor(note_class(graph, type(cls), name)):
        raise StopRecordingError("class-write", f"{cls.__qualname__}.{name}")
    if deletes:
        read_written_class(graph, cls, name, None)
    before_class_write(graph, cls, name)


def write_generic(observer: Observer, obj: Any, name: str, deletes: bool) -> None:
    """Record a write as `object.__setattr__` and `object.__delattr__` do it."""
    graph = observer.session.graph
    descriptor = note_class(graph, type(obj), name)
    if type(descriptor) is types.MemberDescriptorType:
        held = slot_value(obj, descriptor)
        node = graph.require(obj)
        before_slot_write(graph, node, Kind.SLOT, descriptor, held)
    elif type(descriptor) is property:
        for part in ("fset", "fdel"):
            function = property.__dict__[part].__get__(descriptor)
            if type(function) is types.FunctionType:
                graph.constant(function)
                register_function(observer.session, function)
    elif is_data_descriptor(descriptor):
        name_of_setter = "__delete__" if deletes else "__set__"
        runs_python = is_python(special_method(observer, descriptor, name_of_setter))
        if not runs_python and not _is_new_function(graph, obj):
            _write_native(observer, obj, name, descriptor)
    else:
        namespace = namespace_of(graph, obj)
        if namespace is not None:
            if deletes:
                read_item(graph, namespace.obj, name)
            extent = Extent.DELETION if deletes else Extent.KEY
            before_write(graph, namespace.obj, extent, name)


def _write_native(observer: Observer, obj: Any, name: str, descriptor: Any) -> None:
    session = observer.session
    entry = session.annotations.find(descriptor)
    if session.operators.is_tensor(type(obj)):
        expect_operator(observer, f"set {name}")
    elif entry is not None:
        # The value is kept; a read has the object alone as an argument.
        session.apply(observer, entry, NativeCall(name, (obj, None), {}))
    else:
        kind = type(obj).__name__
        raise StopRecordingError("native-attribute", f"{kind}.{name}")


def _is_new_function(graph: RefGraph, obj: Any) -> bool:
    # Its name and the like are taken when the run is over.
    if type(obj) is not types.FunctionType or graph.require(obj).external:
        return False
    graph.changes(graph.require(obj))
    return True
