"""Annotations that are rules: native callables that stand for an instruction."""

from __future__ import annotations

import builtins
import collections
import contextvars
import functools
import inspect
import itertools
import math
import operator
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.annotations.model import Entry, NativeCall, Rule
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.rules import attributes, calls, containers, natives, operators
from magweld.frontend.rules.functions import note_class, register_function
from magweld.frontend.state.contents import (
    Extent,
    before_write,
    builtin_base,
    elements,
    namespace_of,
    read_all,
    read_item,
    read_keys,
    read_length,
)
from magweld.frontend.state.lookup import lookup_generic
from magweld.frontend.state.mro import ABSENT, is_class
from magweld.frontend.state.refgraph import Kind, RefGraph
from magweld.frontend.state.values import is_scalar

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def _graph(observer: Observer) -> RefGraph:
    return observer.session.graph


def _getattr(observer: Observer, call: NativeCall) -> None:
    attributes.read_attribute(observer, call.args[0], call.args[1])


def _setattr(observer: Observer, call: NativeCall) -> None:
    attributes.write_attribute(observer, call.args[0], call.args[1], "__setattr__")


def _delattr(observer: Observer, call: NativeCall) -> None:
    attributes.write_attribute(observer, call.args[0], call.args[1], "__delattr__")


def _generic_setattr(observer: Observer, call: NativeCall) -> None:
    attributes.write_generic(observer, call.args[0], call.args[1], deletes=False)


def _generic_delattr(observer: Observer, call: NativeCall) -> None:
    attributes.write_generic(observer, call.args[0], call.args[1], deletes=True)


def _generic_getattr(observer: Observer, call: NativeCall) -> None:
    obj, name = call.args
    attributes.read_found(observer, obj, name, lookup_generic(obj, name))


def _isinstance(observer: Observer, call: NativeCall) -> None:
    obj, target = call.args
    _check_class(observer, target, "__instancecheck__")
    if not is_scalar(obj):
        _graph(observer).require(obj)
        if note_class(_graph(observer), type(obj), "__class__") is not _CLASS_GETTER:
            raise StopRecordingError("native-attribute", "__class__")


_CLASS_GETTER: Final = object.__dict__["__class__"]


def _issubclass(observer: Observer, call: NativeCall) -> None:
    _check_class(observer, call.args[1], "__subclasscheck__")


def _check_class(observer: Observer, target: Any, name: str) -> None:
    if type(target) is tuple:
        read_all(_graph(observer), target)
        for part in target:
            _check_class(observer, part, name)
        return
    check = note_class(_graph(observer), type(target), name)
    if type(check) is not FunctionType:
        return
    register_function(observer.session, check)
    if observer.session.annotations.find(check) is not None:
        # Abstract base classes answer from their registries, unobserved.
        observer.session.quiet = observer


def _any(observer: Observer, call: NativeCall) -> None:
    """`any` and `all`: the truth of the elements."""
    (obj,) = call.args
    natives.iterate(observer, obj)
    items = elements(obj) if builtin_base(obj) is not None else []
    for item in items if type(obj) not in _VIEWS else list(obj):
        natives.test_truth(observer, item)


def _len(observer: Observer, call: NativeCall) -> None:
    obj = call.args[0]
    if is_scalar(obj) or observer.session.operators.is_tensor(type(obj)):
        if not is_scalar(obj):
            attributes.expect_operator(observer, "len")
        return
    method = operators.special_method(observer, obj, "__len__")
    if operators.is_python(method):
        return
    if builtin_base(obj) is not None:
        read_length(_graph(observer), obj)
    elif type(obj) is range:
        natives.read_fields(observer, obj)
    elif type(obj) not in natives.ITERATORS or not _graph(observer).require(obj).owned:
        raise StopRecordingError("native-operator", f"len of {type(obj).__name__}")


def _iter(observer: Observer, call: NativeCall) -> None:
    if len(call.args) != 1:
        raise StopRecordingError("native-call", "iter with a sentinel")
    natives.iterate(observer, call.args[0])
    observer.after = attributes.adopt_top


def _next(observer: Observer, call: NativeCall) -> None:
    containers.check_iterator(observer, call.args[0])
    observer.after = attributes.adopt_top


def _bool(observer: Observer, call: NativeCall) -> None:
    for obj in call.args:
        if observer.session.operators.is_tensor(type(obj)):
            attributes.expect_operator(observer, "bool")
        else:
            natives.test_truth(observer, obj)


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
            natives.iterate(observer, obj)
            _check_elements(observer, list(obj), key)
        elif type(obj) in (zip, enumerate):
            # What they deliver is new; what is in it would be compared unseen.
            raise StopRecordingError("opaque-value", type(obj).__qualname__)
        elif not is_scalar(obj):
            natives.iterate(observer, obj)
    observer.after = attributes.adopt_top


_VIEWS: Final = tuple(type(view) for view in ({}.keys(), {}.values(), {}.items()))


def _check_elements(observer: Observer, items: list[Any], key: Any) -> None:
    for item in items:
        if key is None and not observer.session.operators.is_tensor(type(item)):
            _check_element(observer, item)


def _check_element(observer: Observer, item: Any) -> None:
    if is_scalar(item):
        return
    if builtin_base(item) is not None:
        natives.read_value(observer, item)
        return
    names = ("__add__", "__radd__", "__lt__", "__gt__")
    methods = [operators.special_method(observer, item, name) for name in names]
    if not any(operators.is_python(method) for method in methods):
        raise StopRecordingError("opaque-value", type(item).__qualname__)


def _dict_get(observer: Observer, call: NativeCall) -> None:
    read_item(_graph(observer), call.args[0], call.args[1])


def _dict_pop(observer: Observer, call: NativeCall) -> None:
    read_item(_graph(observer), call.args[0], call.args[1])
    if dict.get(call.args[0], call.args[1], ABSENT) is not ABSENT:
        before_write(_graph(observer), call.args[0], Extent.KEY, call.args[1])


def _dict_setdefault(observer: Observer, call: NativeCall) -> None:
    read_item(_graph(observer), call.args[0], call.args[1])
    if dict.get(call.args[0], call.args[1], ABSENT) is ABSENT:
        before_write(_graph(observer), call.args[0], Extent.KEY, call.args[1])


def _dict_set(observer: Observer, call: NativeCall) -> None:
    before_write(_graph(observer), call.args[0], Extent.KEY, call.args[1])


def _dict_keys(observer: Observer, call: NativeCall) -> None:
    read_keys(_graph(observer), call.args[0])
    observer.after = attributes.adopt_top


def _dict_all(observer: Observer, call: NativeCall) -> None:
    read_all(_graph(observer), call.args[0])
    observer.after = attributes.adopt_top


def _dict_length(observer: Observer, call: NativeCall) -> None:
    read_length(_graph(observer), call.args[0])


def _dict_contains(observer: Observer, call: NativeCall) -> None:
    operators.contains(observer, call.args[0], call.args[1])


def _dict_change(observer: Observer, call: NativeCall) -> None:
    before_write(_graph(observer), call.args[0], Extent.WHOLE)
    observer.after = attributes.adopt_top


def _dict_update(observer: Observer, call: NativeCall) -> None:
    target, sources = call.args[0], call.args[1:]
    for source in (*sources, call.kwargs):
        _read_pairs(observer, source)
        keys = list(source) if builtin_base(source) is dict else None
        if keys is None:
            before_write(_graph(observer), target, Extent.WHOLE)
        for key in keys or ():
            before_write(_graph(observer), target, Extent.KEY, key)


def _read_pairs(observer: Observer, source: Any) -> None:
    if builtin_base(source) is dict:
        _graph(observer).adopt(source)
        containers.read_mapping(observer, source)
        return
    natives.iterate(observer, source)
    if builtin_base(source) is not None:
        for pair in elements(source):
            natives.iterate(observer, pair)


def _make_dict(observer: Observer, call: NativeCall) -> None:
    for source in call.args:
        _read_pairs(observer, source)
    observer.after = attributes.adopt_top


def _start_dict(observer: Observer, call: NativeCall) -> None:
    target, *sources = call.args
    for source in sources:
        _read_pairs(observer, source)
    if target is not None and _graph(observer).require(target).external:
        before_write(_graph(observer), target, Extent.WHOLE)


def _construct(observer: Observer, call: NativeCall) -> None:
    calls.construct(observer, call.args[0], call.args[1:], call.kwargs)


def _fold(observer: Observer, call: NativeCall) -> None:
    natives.prepare_callback(observer, call.args[0])
    natives.iterate(observer, call.args[1])
    observer.after = attributes.adopt_top


def _iterator(observer: Observer, call: NativeCall) -> None:
    for argument in call.args:
        if not is_scalar(argument):
            natives.iterate(observer, argument)
    observer.after = attributes.adopt_top


def _signature(observer: Observer, call: NativeCall) -> None:
    """`inspect.signature`: what it reads of a function and of those it wraps."""
    graph = _graph(observer)
    function = call.args[0]
    while True:
        if type(function) is MethodType:
            function = function.__func__
            graph.constant(function)
        if type(function) is not FunctionType:
            raise StopRecordingError("native-call", call.name)
        register_function(observer.session, function)
        namespace = namespace_of(graph, function)
        assert namespace is not None, "a function has a namespace"
        read_item(graph, namespace.obj, "__signature__")
        read_item(graph, namespace.obj, "__wrapped__")
        if "__wrapped__" not in namespace.obj:
            break
        function = namespace.obj["__wrapped__"]
    observer.after = attributes.adopt_top


def _vars(observer: Observer, call: NativeCall) -> None:
    if is_class(call.args[0]):
        raise StopRecordingError("native-attribute", "__dict__ of a class")
    attributes.read_attribute(observer, call.args[0], "__dict__")


def _context_get(observer: Observer, call: NativeCall) -> None:
    graph = _graph(observer)
    variable = call.args[0]
    value = variable.get(ABSENT)
    graph.read(graph.require(variable), Kind.CONTEXT, None, value)
    if value is ABSENT and len(call.args) == 1:
        # The default of the variable, fixed when it was made.
        observer.after = _hold_top


def _hold_top(observer: Observer, stack: list[Any]) -> None:
    if not is_scalar(stack[-1]):
        _graph(observer).constant(stack[-1])


def _context_set(observer: Observer, call: NativeCall) -> None:
    graph = _graph(observer)
    node = graph.require(call.args[0])
    if node.external:
        graph.slot_snapshots.setdefault((id(node.obj), None), node.obj.get(ABSENT))
        graph.read(node, Kind.CONTEXT, None, node.obj.get(ABSENT))
        node.owned = True
    observer.after = attributes.adopt_top


def _binary(symbol: str) -> Rule:
    def rule(observer: Observer, call: NativeCall) -> None:
        operators.binary(observer, symbol, call.args[0], call.args[1])

    return rule


def _comparison(symbol: str) -> Rule:
    def rule(observer: Observer, call: NativeCall) -> None:
        operators.compare(observer, symbol, call.args[0], call.args[1])

    return rule


def _subscript(observer: Observer, call: NativeCall) -> None:
    containers.subscript(observer, call.args[0], call.args[1])


def _dict_methods(kind: type) -> tuple[tuple[Any, Entry], ...]:
    rules: dict[Rule, str] = {
        _dict_get: "get",
        _subscript: "__getitem__",
        _dict_pop: "pop",
        _dict_setdefault: "setdefault",
        _dict_set: "__setitem__ __delitem__",
        _dict_keys: "keys __iter__ __reversed__",
        _dict_all: "values items copy",
        _dict_length: "__len__",
        _dict_contains: "__contains__",
        _dict_change: "clear popitem move_to_end",
        _dict_update: "update",
        _start_dict: "__init__",
    }
    return tuple(
        (vars(kind)[name], rule)
        for rule, names in rules.items()
        for name in names.split()
        if name in vars(kind)
    )


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
    (dict, _make_dict),
    (collections.OrderedDict, _make_dict),
    (object.__setattr__, _generic_setattr),
    (object.__delattr__, _generic_delattr),
    (object.__getattribute__, _generic_getattr),
    (type.__call__, _construct),
    (functools.reduce, _fold),
    (inspect.signature, _signature),
    (contextvars.ContextVar.get, _context_get),
    (contextvars.ContextVar.set, _context_set),
    (contextvars.ContextVar.reset, _context_set),
    (itertools.chain, _iterator),
    (itertools.chain.__dict__["from_iterable"], _iterator),
    (itertools.islice, _iterator),
    (itertools.product, _iterator),
    (itertools.repeat, _iterator),
    (itertools.zip_longest, _iterator),
    (operator.getitem, _subscript),
    *((getattr(operator, n), _comparison(s)) for n, s in (("eq", "=="), ("ne", "!="))),
    *((getattr(operator, n), _comparison(s)) for n, s in (("lt", "<"), ("gt", ">"))),
    *((getattr(operator, n), _comparison(s)) for n, s in (("le", "<="), ("ge", ">="))),
    *((getattr(operator, n), _binary(s)) for n, s in (("add", "+"), ("sub", "-"))),
    *((getattr(operator, n), _binary(s)) for n, s in (("mul", "*"), ("matmul", "@"))),
    (operator.truediv, _binary("/")),
    (operator.floordiv, _binary("//")),
    (operator.mod, _binary("%")),
    (operator.pow, _binary("**")),
    *_dict_methods(dict),
    *_dict_methods(collections.OrderedDict),
)
