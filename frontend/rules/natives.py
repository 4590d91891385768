"""Owns calls of native code: annotations applied, everything else refused."""

from __future__ import annotations

import types
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.annotations.model import (
    Annotation,
    NativeCall,
    Result,
    Use,
    Write,
    unbind,
)
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.rules.attributes import adopt_top, expect_operator
from magweld.frontend.rules.functions import note_class, register_function
from magweld.frontend.state.contents import (
    CONTAINERS,
    Extent,
    before_write,
    builtin_base,
    elements,
    read_all,
    read_keys,
    read_length,
    read_truth,
)
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.refgraph import Kind
from magweld.frontend.state.values import is_identity, is_scalar

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def call_native(
    observer: Observer, native: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Apply the annotation of a native callable to one call of it.

    Raises:
        StopRecordingError: It has none, and it is no tensor operator either.
    """
    session = observer.session
    observer.calls_native = True
    descriptor, receiver = unbind(native)
    call = NativeCall(native_name(native), (*receiver, *args), kwargs)
    entry = session.annotations.find(descriptor)
    if entry is None:
        if session.operators.is_operator(descriptor):
            expect_operator(observer, call.name)
            return
        raise StopRecordingError("native-call", call.name)
    if isinstance(entry, Annotation):
        apply(observer, entry, call)
    else:
        entry(observer, call)


def native_name(native: Any) -> str:
    """Return a readable name of a native callable."""
    if type(native) not in _NAMED:
        return f"object of {type(native).__qualname__}"
    module = getattr(native, "__module__", None)
    name: str = native.__qualname__
    return f"{module}.{name}" if type(module) is str else name


_NAMED: Final = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    type,
)


def apply(observer: Observer, annotation: Annotation, call: NativeCall) -> None:
    """Record reads and writes of a call as its annotation tells them."""
    uses = annotation.uses
    callbacks = []
    for index, argument in enumerate(call.args):
        use = uses[index] if index < len(uses) else annotation.rest
        callbacks += _use(observer, use, argument)
    for argument in call.kwargs.values():
        callbacks += _use(observer, annotation.rest, argument)
    if any(callbacks):
        _read_for_callbacks(observer, call)
    graph = observer.session.graph
    if annotation.write is Write.TAIL and type(call.args[0]) is list:
        before_write(graph, call.args[0], Extent.TAIL)
    elif annotation.write is not Write.NOTHING:
        before_write(graph, call.args[0], Extent.WHOLE)
    if annotation.result is Result.FRESH:
        observer.after = adopt_top


def _use(observer: Observer, use: Use, argument: Any) -> list[bool]:
    return [bool(_USES[use](observer, argument))]


def _keep(observer: Observer, argument: Any) -> None:
    """Nothing of the argument is read."""


def _value(observer: Observer, argument: Any) -> None:
    if not observer.session.operators.is_tensor(type(argument)):
        read_value(observer, argument)


def read_value(observer: Observer, argument: Any) -> None:
    """Record that the value of an object was used, iterators made here included."""
    graph = observer.session.graph
    if is_scalar(argument) or is_identity(argument):
        return
    if builtin_base(argument) is not None:
        read_all(graph, argument)
        for value in elements(argument):
            _value(observer, value)
        return
    if type(argument) in (range, slice):
        read_fields(observer, argument)
        return
    raise StopRecordingError("opaque-value", type(argument).__qualname__)


_FIELDS: Final = ("start", "stop", "step")


def read_fields(observer: Observer, obj: Any) -> None:
    """Record what a range or a slice consists of."""
    graph = observer.session.graph
    node = graph.require(obj)
    for name in _FIELDS:
        descriptor = type(obj).__dict__[name]
        graph.read(node, Kind.SLOT, descriptor, descriptor.__get__(obj))


def _content(observer: Observer, argument: Any) -> None:
    if builtin_base(argument) is not None:
        read_all(observer.session.graph, argument)
    else:
        iterate(observer, argument)


def _length(observer: Observer, argument: Any) -> None:
    if builtin_base(argument) is not None:
        read_length(observer.session.graph, argument)


def _truth(observer: Observer, argument: Any) -> None:
    test_truth(observer, argument)


_ORDERED_VIEWS: Final = (
    OrderedDict[int, int]().keys,
    OrderedDict[int, int]().values,
    OrderedDict[int, int]().items,
)

# Iterators and views over containers: whoever made them has read the container.
ITERATORS: Final = frozenset(
    {
        *(
            type(iter(c))
            for c in ([], (), {}, set(), "", b"", range(0), range(1 << 70))
        ),
        *(type(iter(v)) for v in ({}.values(), {}.items())),
        *(type(reversed(c)) for c in ([], {}, {}.values(), {}.items())),
        type({}.keys()),
        type({}.values()),
        type({}.items()),
        *(type(view()) for view in _ORDERED_VIEWS),
        *(type(iter(view())) for view in _ORDERED_VIEWS),
        types.GeneratorType,
        types.MappingProxyType,
        enumerate,
        zip,
        map,
        filter,
        reversed,
    }
)


def iterate(observer: Observer, obj: Any) -> None:
    """Record what iterating over an object reads.

    Raises:
        StopRecordingError: It is an iterator from before the run, or native.
    """
    graph = observer.session.graph
    kind = type(obj)
    observer.calls_native = True
    if is_scalar(obj) or observer.session.operators.is_tensor(kind):
        return
    if kind is range:
        read_fields(observer, obj)
        return
    if kind in ITERATORS or kind.__module__ == "itertools":
        if not graph.require(obj).owned:
            raise StopRecordingError("opaque-iterator", kind.__qualname__)
        return
    method = note_class(graph, kind, "__iter__")
    if type(method) is types.FunctionType:
        register_function(observer.session, method)
    elif builtin_base(obj) is dict:
        read_keys(graph, obj)
    elif builtin_base(obj) is not None:
        read_all(graph, obj)
    else:
        _iterate_class(observer, obj)


def _iterate_class(observer: Observer, obj: Any) -> None:
    # A class is iterable through its metaclass, an old-style sequence by __getitem__.
    method = note_class(observer.session.graph, type(obj), "__getitem__")
    if type(method) is not types.FunctionType:
        raise StopRecordingError("opaque-iterator", type(obj).__qualname__)
    register_function(observer.session, method)


def _call(observer: Observer, argument: Any) -> bool:
    return argument is not None and prepare_callback(observer, argument)


def prepare_callback(observer: Observer, function: Any) -> bool:
    """Record what calls of a callback read.

    Returns:
        Whether the callback is native, so that its arguments are read unobserved.
    """
    session = observer.session
    kind = type(function)
    if kind is types.FunctionType:
        register_function(session, function)
        return False
    if kind is types.MethodType:
        inner = function.__func__
        session.graph.constant(inner)
        return prepare_callback(observer, inner)
    if kind in (types.BuiltinFunctionType, types.MethodDescriptorType, type):
        entry = session.annotations.find(unbind(function)[0])
        if isinstance(entry, Annotation) and entry.write is Write.NOTHING:
            return True
        if entry is not None and kind is type:
            return True
    method = note_class(session.graph, kind, "__call__")
    if type(method) is types.FunctionType:
        session.graph.require(function)
        register_function(session, method)
        return False
    raise StopRecordingError("native-call", f"callback {native_name(function)}")


def hand_over(observer: Observer, row: Row, stack: list[Any]) -> None:
    """YIELD_VALUE, and RETURN_VALUE to native code: the receiver may look inside."""
    if observer.native_caller or row.opname == "YIELD_VALUE":
        _read_tree(observer, stack[-1])


def _read_tree(observer: Observer, obj: Any) -> None:
    # What lies in the containers is read if it is a container, else left alone.
    graph = observer.session.graph
    if type(obj) in CONTAINERS and graph.find(obj) is not None:
        read_all(graph, obj)
        for value in elements(obj):
            if type(value) in CONTAINERS:
                _read_tree(observer, value)


def _read_for_callbacks(observer: Observer, call: NativeCall) -> None:
    for argument in (*call.args, *call.kwargs.values()):
        if builtin_base(argument) is not None:
            read_value(observer, argument)


_USES: Final = {
    Use.KEEP: _keep,
    Use.VALUE: _value,
    Use.CONTENT: _content,
    Use.LENGTH: _length,
    Use.TRUTH: _truth,
    Use.ITERATE: iterate,
    Use.CALL: _call,
}


def test_truth(observer: Observer, obj: Any) -> None:
    """Record what the truth of an object depends on."""
    kind = type(obj)
    if is_scalar(obj) or observer.session.operators.is_tensor(kind):
        return
    graph = observer.session.graph
    for name in ("__bool__", "__len__"):
        method = note_class(graph, kind, name)
        if method is ABSENT:
            continue
        if type(method) is types.FunctionType:
            register_function(observer.session, method)
        elif builtin_base(obj) is not None:
            read_truth(graph, obj)
        elif kind is range:
            read_fields(observer, obj)
        elif kind not in ITERATORS or not graph.require(obj).owned:
            raise StopRecordingError("native-operator", f"truth of {kind.__name__}")
        return
