"""Owns instance and subclass checks."""

from __future__ import annotations

import abc
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import NativeCall
from magweld.frontend.rules.attributes import see_through
from magweld.frontend.rules.functions import note_class, register_function
from magweld.frontend.state.contents import read_all
from magweld.frontend.state.mro import is_immutable, mro
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_scalar

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def is_instance(observer: Observer, call: NativeCall) -> None:
    """`isinstance`."""
    obj, target = call.args
    if not _check_class(observer, target, "__instancecheck__"):
        # Classes such as FloatTensor ask for more than the type.
        if observer.session.operators.is_tensor(type(obj)):
            observer.session.operators.read_form(obj)
    if not is_scalar(obj):
        graph = observer.session.graph
        graph.require(obj)
        original = see_through(graph, obj)
        if original is not obj:
            # It is an instance of its own class and of that of the original.
            _read_order(graph, type(obj))
            obj = original
        if note_class(graph, type(obj), "__class__") is not _CLASS_GETTER:
            raise StopRecordingError("native-attribute", "__class__")
        _read_order(graph, type(obj))


_CLASS_GETTER: Final = object.__dict__["__class__"]


def is_subclass(observer: Observer, call: NativeCall) -> None:
    """`issubclass`."""
    _check_class(observer, call.args[1], "__subclasscheck__")
    if isinstance(call.args[0], type):
        _read_order(observer.session.graph, call.args[0])


def _read_order(graph: RefGraph, cls: type) -> None:
    """Record the bases of a class, which `__bases__` can be given others for."""
    if not is_immutable(cls):
        graph.constant(mro(cls))
        graph.read(graph.constant(cls), Kind.FIELD, "__mro__", mro(cls))


def _check_class(observer: Observer, target: Any, name: str) -> bool:
    """Record what a class check reads; False if native code of a metaclass answers."""
    graph = observer.session.graph
    if type(target) is tuple:
        read_all(graph, target)
        return all([_check_class(observer, part, name) for part in target])
    check = note_class(graph, type(target), name)
    if type(check) is not FunctionType:
        return check in _PLAIN_CHECKS
    register_function(observer.session, check)
    if observer.session.annotations.find(check) is not None:
        # Abstract base classes answer from their registries, unobserved; the token
        # changes with each registration.
        observer.session.quiet = observer
        token = graph.constant(abc.get_cache_token)
        graph.read(token, Kind.QUERY, (), abc.get_cache_token())
    return True


_PLAIN_CHECKS: Final = (type.__instancecheck__, type.__subclasscheck__)
