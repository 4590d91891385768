"""Owns calls of native code: annotations applied, everything else refused."""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entry,
    NativeCall,
    PureRule,
    Result,
    Use,
    Write,
    unbind,
)
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.handlers import lets_through
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import (
    adopt_top,
    bear_top,
    expect_operator,
    read_slot,
)
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.protocols import (
    advance,
    check_order,
    is_native_iterator,
    iterate,
    read_base,
    read_value,
    take_elements,
    test_truth,
)
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import (
    CONTAINERS,
    Extent,
    before_write,
    builtin_base,
    elements,
    read_all,
    read_length,
)
from magweld.frontend.state.mro import is_immutable
from magweld.frontend.state.natives import read_content, scalar_base
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_identity, is_scalar

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


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
    apply_entry(observer, entry, call)


def apply_entry(observer: Observer, entry: Entry, call: NativeCall) -> None:
    """Record reads and writes of a call as an annotation or a rule tells them."""
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
    """Record reads and writes of a call as its annotation tells them.

    Raises:
        StopRecordingError: The program gets a number that no later call finds again.
    """
    if annotation.result is Result.ADDRESS:
        raise StopRecordingError("opaque-key", "hash of an object")
    uses = annotation.uses
    callbacks = []
    for index, argument in enumerate(call.args):
        use = uses[index] if index < len(uses) else annotation.rest
        callbacks.append(_USES[use](observer, argument))
    for argument in call.kwargs.values():
        callbacks.append(_USES[annotation.rest](observer, argument))
    if any(callbacks):
        read_for_callbacks(observer, (*call.args, *call.kwargs.values()))
    graph = observer.session.graph
    if annotation.write is Write.TAIL and type(call.args[0]) is list:
        before_write(graph, call.args[0], Extent.TAIL)
    elif annotation.write is not Write.NOTHING:
        before_write(graph, call.args[0], Extent.WHOLE)
    if annotation.result is Result.FRESH:
        observer.after = adopt_top
    elif annotation.result is Result.NEW:
        observer.after = bear_top


def _keep(observer: Observer, argument: Any) -> None:
    """Nothing of the argument is read."""


_NUMBER_METHODS: Final = (
    *("__index__", "__int__", "__float__", "__complex__", "__trunc__", "__floor__"),
    *("__ceil__", "__round__", "__divmod__", "__rdivmod__", "__bytes__"),
)


def _value(observer: Observer, argument: Any) -> None:
    session = observer.session
    if not (is_scalar(argument) or is_identity(argument)):
        kind = type(argument)
        methods = [note_class(session.graph, kind, name) for name in _NUMBER_METHODS]
        python = [m for m in methods if type(m) is types.FunctionType]
        if python and not session.operators.is_tensor(kind):
            # It runs observed; native code may still take what the object holds.
            for method in python:
                register_function(session, method)
            if scalar_base(argument) is None and builtin_base(argument) is None:
                return
    if not observer.session.operators.is_tensor(type(argument)):
        read_value(observer, argument)


def _base(observer: Observer, argument: Any) -> None:
    read_base(observer.session.graph, argument)


def _content(observer: Observer, argument: Any) -> None:
    if builtin_base(argument) is not None:
        check_order(observer.session.graph, argument)
        take_elements(observer, argument)
    else:
        iterate(observer, argument)


def _length(observer: Observer, argument: Any) -> None:
    if builtin_base(argument) is not None:
        read_length(observer.session.graph, argument)


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
        read_method(session.graph, function)
        return prepare_callback(observer, function.__func__)
    if kind in (types.BuiltinFunctionType, types.MethodDescriptorType, type):
        entry = session.annotations.find(unbind(function)[0])
        if isinstance(entry, Annotation) and entry.write is Write.NOTHING:
            return True
        if isinstance(entry, PureRule) or (entry is not None and kind is type):
            return True
        if entry is not None and _is_method_of_container(observer, function):
            return True
    if kind is functools.partial:
        read_partial(session.graph, function)
        return prepare_callback(observer, function.func)
    method = note_class(session.graph, kind, "__call__")
    if type(method) is types.FunctionType:
        session.graph.require(function)
        register_function(session, method)
        return False
    if isinstance(session.annotations.find(method), PureRule):
        read_content(session.graph, function)
        return True
    raise StopRecordingError("native-call", f"callback {native_name(function)}")


_READING_METHODS: Final = ("get", "__getitem__", "__contains__", "count", "index")


def _is_method_of_container(observer: Observer, method: Any) -> bool:
    """Return whether a native method is bound to a container that is fully known."""
    receiver = getattr(method, "__self__", None)
    if builtin_base(receiver) is None:
        return False
    if method.__name__ in _READING_METHODS:
        read_value(observer, receiver)
        return True
    graph = observer.session.graph
    node = graph.require(receiver)
    if node.external:
        return False
    # It may be called any number of times, and change the container each time.
    before_write(graph, receiver, Extent.WHOLE)
    return True


def hand_over(observer: Observer, row: Row, stack: list[Any]) -> None:
    """YIELD_VALUE, and RETURN_VALUE to native code: the receiver may look inside."""
    yields = row.opname == "YIELD_VALUE"
    if yields:
        _check_holders(observer, row)
        if len(stack) > 1 and is_native_iterator(stack[-2]) and _delegates(observer):
            advance(observer.session.graph, stack[-2])
    if observer.native_caller or yields:
        _read_tree(observer, stack[-1])
        _note_truth(observer, stack[-1])
    caller = observer.session.caller
    if caller is None or caller.previous is None or yields:
        return
    if caller.previous.opname != "GET_ITER" and is_native_iterator(stack[-1]):
        _note_items(observer, stack[-1])
    if caller.previous.tests_result:
        _test_result(observer.session, caller, stack[-1])


def _note_items(observer: Observer, iterator: Any) -> None:
    """Take note that native code may take what an iterator gives."""
    lifting = observer.session.graph.lifting
    if observer.native_caller and lifting is not None:
        lifting.note_advance(iterator)


def _delegates(observer: Observer) -> bool:
    """Return whether a generator is in a `yield from`."""
    row = observer.previous
    return row is not None and any(
        other is not None and other.opname == "SEND" and row.offset in other.normal
        for other in observer.rows
    )


# What handlers begin with that no code of the program has.
_OWN_HANDLERS: Final = ("CALL_INTRINSIC_1", "CLEANUP_THROW")


def _check_holders(observer: Observer, row: Row) -> None:
    """Refuse a generator whose end runs code while a native iterator holds it.

    The program lets go of the iterator, which the recording keeps: the end of the
    generator would come late.

    Raises:
        StopRecordingError: There is such an iterator.
    """
    if all(_passes_end(observer, at) for at in row.handlers):
        return
    for node in observer.session.graph.nodes.values():
        if is_native_iterator(node.obj) and _leads_to(node.obj, observer.frame):
            raise StopRecordingError("unknown-function", "the end of a generator")


def _passes_end(observer: Observer, offset: int) -> bool:
    """Return whether a handler runs no code of the program when its generator ends."""
    first = observer.rows[offset >> 1]
    if first is None or first.opname in _OWN_HANDLERS:
        return True
    return lets_through(observer, offset, GeneratorExit)


def _leads_to(iterator: Any, frame: types.FrameType) -> bool:
    """Return whether a native iterator takes its items from what a frame yields."""
    for part in gc.get_referents(iterator):
        generator = part
        while type(generator) is types.GeneratorType:
            if generator.gi_frame is frame:
                return True
            generator = generator.gi_yieldfrom
        if type(part) is tuple or is_native_iterator(part):
            if _leads_to(part, frame):
                return True
    return False


def _test_result(session: Session, caller: Observer, result: Any) -> None:
    """Record that a comparison takes the truth of what a function has given it."""
    if session.operators.is_tensor(type(result)):
        caller.testing = result
        expect_operator(caller, "bool")
    elif result is not NotImplemented:
        test_truth(caller, result)


def _note_truth(observer: Observer, obj: Any) -> None:
    # The receiver may test the truth of an object whose class has no say in it today.
    graph, kind = observer.session.graph, type(obj)
    if not is_scalar(obj) and not observer.session.operators.is_tensor(kind):
        if not is_immutable(kind):
            for name in ("__bool__", "__len__"):
                note_class(graph, kind, name)


def _read_tree(observer: Observer, obj: Any) -> None:
    # What lies in the containers is read if it is a container, else left alone.
    graph = observer.session.graph
    if type(obj) in CONTAINERS and graph.find(obj) is not None:
        read_all(graph, obj)
        for value in elements(obj):
            if type(value) in CONTAINERS:
                _read_tree(observer, value)


def read_for_callbacks(observer: Observer, arguments: tuple[Any, ...]) -> None:
    """Record the whole value of iterables whose elements native callbacks will get."""
    for argument in arguments:
        if builtin_base(argument) is not None or is_native_iterator(argument):
            read_value(observer, argument)


def read_method(graph: RefGraph, method: types.MethodType) -> None:
    """Record what a bound method consists of."""
    node = graph.require(method)
    graph.read(node, Kind.FUNCTION, None, method.__func__)
    graph.read(node, Kind.RECEIVER, None, method.__self__)


def read_partial(graph: RefGraph, partial: Any) -> None:
    """Record what a partial function consists of."""
    for name in ("func", "args", "keywords"):
        read_slot(graph, partial, functools.partial.__dict__[name])
    read_all(graph, partial.args)
    read_all(graph, partial.keywords)


# What each reads; true for a callback that is native.
_USES: Final[dict[Use, Callable[[Observer, Any], bool | None]]] = {
    Use.KEEP: _keep,
    Use.VALUE: _value,
    Use.BASE: _base,
    Use.CONTENT: _content,
    Use.LENGTH: _length,
    Use.ITERATE: iterate,
    Use.CALL: _call,
}


def record_operator(
    observer: Observer, name: str, func: Any, args: Any, kwargs: Any
) -> None:
    """Record the current instruction as one call of an operator."""
    operators = observer.session.operators
    operators.open(func, args, kwargs)

    def close(observer: Observer, stack: list[Any]) -> None:
        observer.awaits_operator = ""
        operators.close(stack[-1])

    observer.session.opaque_caller = observer
    observer.awaits_operator = name
    observer.after = close
