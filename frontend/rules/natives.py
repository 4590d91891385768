"""Owns calls of native code: annotations applied, everything else refused."""

from __future__ import annotations

import types
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
from magweld.frontend.rules.protocols import iterate, read_value, test_truth
from magweld.frontend.state.contents import (
    CONTAINERS,
    Extent,
    before_write,
    builtin_base,
    elements,
    read_all,
    read_length,
)
from magweld.frontend.state.values import is_scalar

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


def _call(observer: Observer, argument: Any) -> bool:
    return not is_scalar(argument) and prepare_callback(observer, argument)


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
