"""Annotations that are rules: native callables that stand for an instruction."""

from __future__ import annotations

import abc
import builtins
import math
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.annotations.model import Entry, NativeCall
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.rules import (
    attributes,
    calls,
    containers,
    natives,
    operators,
    protocols,
)
from magweld.frontend.rules.attribute_writes import write_attribute, write_generic
from magweld.frontend.rules.functions import note_class, register_function
from magweld.frontend.state.contents import (
    builtin_base,
    elements,
    read_all,
    read_length,
)
from magweld.frontend.state.lookup import lookup_generic
from magweld.frontend.state.mro import is_class
from magweld.frontend.state.refgraph import Kind, RefGraph
from magweld.frontend.state.values import is_scalar

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def _graph(observer: Observer) -> RefGraph:
    return observer.session.graph


def _getattr(observer: Observer, call: NativeCall) -> None:
    attributes.read_attribute(observer, call.args[0], call.args[1])


def _setattr(observer: Observer, call: NativeCall) -> None:
    write_attribute(observer, call.args[0], call.args[1], "__setattr__")


def _delattr(observer: Observer, call: NativeCall) -> None:
    write_attribute(observer, call.args[0], call.args[1], "__delattr__")


def _generic_setattr(observer: Observer, call: NativeCall) -> None:
    write_generic(observer, call.args[0], call.args[1], deletes=False)


def _generic_delattr(observer: Observer, call: NativeCall) -> None:
    write_generic(observer, call.args[0], call.args[1], deletes=True)


def _generic_getattr(observer: Observer, call: NativeCall) -> None:
    obj, name = call.args
    attributes.read_found(observer, obj, name, lookup_generic(obj, name))


def _isinstance(observer: Observer, call: NativeCall) -> None:
    obj, target = call.args
    if not _check_class(observer, target, "__instancecheck__"):
        # Classes such as FloatTensor ask for more than the type.
        if observer.session.operators.is_tensor(type(obj)):
            observer.session.operators.read_form(obj)
    if not is_scalar(obj):
        _graph(observer).require(obj)
        if note_class(_graph(observer), type(obj), "__class__") is not _CLASS_GETTER:
            raise StopRecordingError("native-attribute", "__class__")


_CLASS_GETTER: Final = object.__dict__["__class__"]


def _issubclass(observer: Observer, call: NativeCall) -> None:
    _check_class(observer, call.args[1], "__subclasscheck__")


def _check_class(observer: Observer, target: Any, name: str) -> bool:
    """Record what a class check reads; False if native code of a metaclass answers."""
    if type(target) is tuple:
        read_all(_graph(observer), target)
        return all([_check_class(observer, part, name) for part in target])
    check = note_class(_graph(observer), type(target), name)
    if type(check) is not FunctionType:
        return check in _PLAIN_CHECKS
    register_function(observer.session, check)
    if observer.session.annotations.find(check) is not None:
        # Abstract base classes answer from their registries, unobserved; the token
        # changes with each registration.
        observer.session.quiet = observer
        graph = _graph(observer)
        token = graph.constant(abc.get_cache_token)
        graph.read(token, Kind.QUERY, (), abc.get_cache_token())
    return True


_PLAIN_CHECKS: Final = (type.__instancecheck__, type.__subclasscheck__)


def _any(observer: Observer, call: NativeCall) -> None:
    """`any` and `all`: the truth of the elements."""
    (obj,) = call.args
    protocols.iterate(observer, obj)
    items = elements(obj) if builtin_base(obj) is not None else []
    if type(obj) in _VIEWS:
        items = _view_elements(observer, obj)
    for item in items:
        protocols.test_truth(observer, item)


def _len(observer: Observer, call: NativeCall) -> None:
    obj = call.args[0]
    if is_scalar(obj):
        return
    method = operators.special_method(observer, obj, "__len__")
    if observer.session.operators.is_tensor(type(obj)):
        attributes.expect_operator(observer, "len")
        return
    if operators.is_python(method):
        return
    if builtin_base(obj) is not None:
        read_length(_graph(observer), obj)
    elif type(obj) is range:
        protocols.read_fields(observer, obj)
    elif (
        type(obj) not in protocols.ITERATORS or not _graph(observer).require(obj).owned
    ):
        raise StopRecordingError("native-operator", f"len of {type(obj).__name__}")


def _iter(observer: Observer, call: NativeCall) -> None:
    if len(call.args) != 1:
        raise StopRecordingError("native-call", "iter with a sentinel")
    protocols.iterate(observer, call.args[0])
    observer.after = attributes.adopt_top


def _next(observer: Observer, call: NativeCall) -> None:
    containers.check_iterator(observer, call.args[0])
    observer.after = attributes.adopt_top


def _bool(observer: Observer, call: NativeCall) -> None:
    for obj in call.args:
        if observer.session.operators.is_tensor(type(obj)):
            attributes.expect_operator(observer, "bool")
        else:
            protocols.test_truth(observer, obj)


def _number(observer: Observer, call: NativeCall) -> None:
    for obj in call.args:
        if observer.session.operators.is_tensor(type(obj)):
            attributes.expect_operator(observer, "number")
            continue
        for name in ("__float__", "__int__", "__index__", "__trunc__"):
            if is_scalar(obj):
                break
            if operators.is_python(operators.special_method(observer, obj, name)):
                break
        else:
            raise StopRecordingError("opaque-value", type(obj).__qualname__)


def _type(observer: Observer, call: NativeCall) -> None:
    if len(call.args) != 1:
        raise StopRecordingError("native-class", "type with three arguments")
    if not is_scalar(call.args[0]):
        _graph(observer).require(call.args[0])


def _hash(observer: Observer, call: NativeCall) -> None:
    if not is_scalar(call.args[0]):
        raise StopRecordingError("opaque-key", "hash of an object")


def _reduce(observer: Observer, call: NativeCall) -> None:
    """Reductions over elements: sum, min, max, sorted."""
    key = call.kwargs.get("key")
    if key is not None:
        natives.prepare_callback(observer, key)
    for obj in call.args:
        if builtin_base(obj) is not None:
            read_all(_graph(observer), obj)
            _check_elements(observer, elements(obj), key)
        elif type(obj) in _VIEWS:
            protocols.iterate(observer, obj)
            _check_elements(observer, _view_elements(observer, obj), key)
        elif type(obj) in (zip, enumerate):
            # What they deliver is new; what is in it would be compared unseen.
            raise StopRecordingError("opaque-value", type(obj).__qualname__)
        elif not is_scalar(obj):
            protocols.iterate(observer, obj)
    observer.after = attributes.adopt_top


_EMPTY: Final[dict[int, int]] = {}
_VIEWS: Final = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))


def _view_elements(observer: Observer, view: Any) -> list[Any]:
    items = list(view)
    for item in items:
        if type(view) is type(_EMPTY.items()):
            _graph(observer).adopt(item)
    return items


def _check_elements(observer: Observer, items: list[Any], key: Any) -> None:
    for item in items:
        if key is None and not observer.session.operators.is_tensor(type(item)):
            _check_element(observer, item)


def _check_element(observer: Observer, item: Any) -> None:
    if is_scalar(item):
        return
    if builtin_base(item) is not None:
        protocols.read_value(observer, item)
        return
    names = ("__add__", "__radd__", "__lt__", "__gt__")
    methods = [operators.special_method(observer, item, name) for name in names]
    if not any(operators.is_python(method) for method in methods):
        raise StopRecordingError("opaque-value", type(item).__qualname__)


def _construct(observer: Observer, call: NativeCall) -> None:
    calls.construct(observer, call.args[0], call.args[1:], call.kwargs)


def _vars(observer: Observer, call: NativeCall) -> None:
    if is_class(call.args[0]):
        raise StopRecordingError("native-attribute", "__dict__ of a class")
    attributes.read_attribute(observer, call.args[0], "__dict__")


SPECIAL: Final[tuple[tuple[Any, Entry], ...]] = (
    (builtins.getattr, _getattr),
    (builtins.hasattr, _getattr),
    (builtins.setattr, _setattr),
    (builtins.delattr, _delattr),
    (builtins.isinstance, _isinstance),
    (builtins.issubclass, _issubclass),
    (builtins.len, _len),
    (builtins.iter, _iter),
    (builtins.next, _next),
    (builtins.hash, _hash),
    (builtins.vars, _vars),
    (builtins.any, _any),
    (builtins.all, _any),
    (builtins.sum, _reduce),
    (builtins.min, _reduce),
    (builtins.max, _reduce),
    (builtins.sorted, _reduce),
    (math.prod, _reduce),
    (bool, _bool),
    (float, _number),
    (type, _type),
    (object.__setattr__, _generic_setattr),
    (object.__delattr__, _generic_delattr),
    (object.__getattribute__, _generic_getattr),
    (type.__call__, _construct),
)
