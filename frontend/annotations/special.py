"""Annotations that are rules: native callables that stand for an instruction."""

from __future__ import annotations

import builtins
import math
import string
from _collections_abc import dict_items
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    PureRule,
    Result,
    Rule,
    on_arguments,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import (
    attributes,
    calls,
    class_checks,
    class_statements,
    iterators,
    natives,
    operators,
    protocols,
    text,
)
from magweld.frontend.rules.attribute_writes import (
    write_attribute,
    write_class,
    write_generic,
)
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import (
    DICT_VIEWS,
    builtin_base,
    elements,
    parts_of_key,
)
from magweld.frontend.state.lookup import lookup_generic
from magweld.frontend.state.mro import is_class
from magweld.frontend.state.natives import scalar_base
from magweld.frontend.state.values import is_identity, is_scalar


def _generic_getattr(observer: Observer, call: NativeCall) -> None:
    obj, name = call.args
    attributes.read_found(observer, obj, name, lookup_generic(obj, name))


def _any(observer: Observer, call: NativeCall) -> None:
    """`any` and `all`: the truth of the elements."""
    (obj,) = call.args
    protocols.iterate(observer, obj)
    items = elements(obj) if builtin_base(obj) is not None else []
    if type(obj) in DICT_VIEWS:
        items = _view_elements(observer, obj)
    for item in items:
        protocols.test_truth(observer, item)


def _iter(observer: Observer, call: NativeCall) -> None:
    if len(call.args) != 1:
        raise StopRecordingError("native-call", "iter with a sentinel")
    protocols.iterate(observer, call.args[0])
    observer.after = attributes.adopt_top


def _next(observer: Observer, call: NativeCall) -> None:
    iterators.check_iterator(observer, call.args[0])
    observer.after = attributes.adopt_top


def _bool(observer: Observer, call: NativeCall) -> None:
    for obj in call.args:
        if observer.session.operators.is_tensor(type(obj)):
            observer.testing = obj
            attributes.expect_operator(observer, "bool")
        else:
            protocols.test_truth(observer, obj)


def _number(observer: Observer, call: NativeCall) -> None:
    for obj in call.args:
        if observer.session.operators.is_tensor(type(obj)):
            attributes.expect_operator(observer, "number")
            continue
        if is_scalar(obj):
            continue
        names = ("__float__", "__int__", "__index__", "__trunc__")
        methods = [special_method(observer, obj, name) for name in names]
        if scalar_base(obj) is not None:
            operators.read_held(observer, obj)
        elif not any(map(is_python, methods)):
            raise StopRecordingError("opaque-value", type(obj).__qualname__)


def _type(observer: Observer, call: NativeCall) -> None:
    if len(call.args) != 1:
        class_statements.make_class(observer, call)
        return
    if not is_scalar(call.args[0]):
        observer.session.graph.require(call.args[0])


def _callable(observer: Observer, call: NativeCall) -> None:
    for obj in call.args:
        if not is_scalar(obj):
            note_class(observer.session.graph, type(obj), "__call__")


def _hash(observer: Observer, call: NativeCall) -> None:
    (obj,) = call.args
    method = special_method(observer, obj, "__hash__")
    if is_python(method):
        _check_hash(observer, method)
        return
    if type(obj) in (tuple, frozenset) or scalar_base(obj) is not None:
        for part in parts_of_key(obj):
            if not is_scalar(part):
                _check_hash(observer, special_method(observer, part, "__hash__"))
        protocols.read_value(observer, obj)
    elif not is_scalar(obj) and not is_identity(obj):
        # It would be made of the address of the object.
        raise StopRecordingError("opaque-key", "hash of an object")


def _check_hash(observer: Observer, method: Any) -> None:
    """Refuse a hash that is not observed and made of an address: a tensor's."""
    entry = observer.session.annotations.find(method)
    if isinstance(entry, Annotation) and entry.result is Result.ADDRESS:
        raise StopRecordingError("opaque-key", "hash of an object")


def _text(methods: tuple[str, ...]) -> Rule:
    """Return the rule of a function that makes text of its first argument."""

    def rule(observer: Observer, call: NativeCall) -> None:
        for obj in call.args[:1]:
            text.read_text(observer, obj, methods)

    return rule


def _str_format(observer: Observer, call: NativeCall) -> None:
    template = str.__str__(call.args[0])
    fields = [name or "" for _, name, _, _ in string.Formatter().parse(template)]
    for obj in (*call.args[1:], *call.kwargs.values()):
        if any(part in name for name in fields for part in ".["):
            protocols.read_value(observer, obj)
        else:
            for methods in (text.FORMAT, text.TEXT, text.REPRESENTATION):
                text.read_text(observer, obj, methods)


def _reduce(observer: Observer, call: NativeCall) -> None:
    """Reductions over elements: sum, min, max, sorted."""
    key = call.kwargs.get("key")
    if key is not None and natives.prepare_callback(observer, key):
        natives.read_for_callbacks(observer, call.args)
    for obj in call.args:
        if builtin_base(obj) is not None:
            protocols.take_elements(observer, obj)
            _check_elements(observer, elements(obj), key)
        elif type(obj) in DICT_VIEWS:
            protocols.iterate(observer, obj)
            _check_elements(observer, _view_elements(observer, obj), key)
        elif not is_scalar(obj):
            protocols.iterate(observer, obj)
            if key is None and protocols.is_native_iterator(obj):
                # What it delivers is new; what is in it is compared unseen.
                protocols.read_through(observer, obj)
    observer.after = attributes.adopt_top


def _view_elements(observer: Observer, view: Any) -> list[Any]:
    items = list(view)
    for item in items:
        if type(view) is dict_items:
            observer.session.graph.adopt(item)
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
    operators.read_held(observer, item)
    names = ("__add__", "__radd__", "__lt__", "__gt__")
    methods = [special_method(observer, item, name) for name in names]
    if not any(is_python(method) for method in methods):
        raise StopRecordingError("opaque-value", type(item).__qualname__)


def _construct(observer: Observer, call: NativeCall) -> None:
    calls.construct(observer, call.args[0], call.args[1:], call.kwargs)


def _vars(observer: Observer, call: NativeCall) -> None:
    if is_class(call.args[0]):
        raise StopRecordingError("native-attribute", "__dict__ of a class")
    attributes.read_attribute(observer, call.args[0], "__dict__")


SPECIAL: Final[Entries] = (
    (builtins.getattr, on_arguments(attributes.read_attribute, 2)),
    (builtins.hasattr, on_arguments(attributes.read_attribute, 2)),
    (builtins.setattr, on_arguments(write_attribute, 2, hook="__setattr__")),
    (builtins.delattr, on_arguments(write_attribute, 2, hook="__delattr__")),
    (builtins.callable, _callable),
    (builtins.isinstance, class_checks.is_instance),
    (builtins.issubclass, class_checks.is_subclass),
    (builtins.len, PureRule(on_arguments(operators.read_length_of, 1))),
    (builtins.iter, _iter),
    (builtins.next, _next),
    (builtins.hash, _hash),
    (builtins.repr, _text(text.REPRESENTATION)),
    (builtins.ascii, _text(text.REPRESENTATION)),
    (builtins.format, _text(text.FORMAT)),
    (str, _text(text.TEXT)),
    (str.format, _str_format),
    (builtins.vars, _vars),
    (builtins.any, PureRule(_any)),
    (builtins.all, PureRule(_any)),
    (builtins.sum, PureRule(_reduce)),
    (builtins.min, PureRule(_reduce)),
    (builtins.max, PureRule(_reduce)),
    (builtins.sorted, PureRule(_reduce)),
    (math.prod, _reduce),
    (bool, _bool),
    (float, _number),
    (type, _type),
    (object.__setattr__, on_arguments(write_generic, 2, deletes=False)),
    (object.__delattr__, on_arguments(write_generic, 2, deletes=True)),
    (type.__setattr__, on_arguments(write_class, 2, deletes=False)),
    (type.__delattr__, on_arguments(write_class, 2, deletes=True)),
    (object.__getattribute__, _generic_getattr),
    (type.__call__, _construct),
)
