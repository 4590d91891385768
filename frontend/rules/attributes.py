"""Owns attribute access: LOAD_ATTR, LOAD_METHOD, STORE_ATTR, DELETE_ATTR."""

from __future__ import annotations

import types
from collections import deque
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import NativeCall
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.functions import register_function
from magweld.frontend.state.attributes import namespace_of, note_class
from magweld.frontend.state.contents import read_all, read_item, slot_value
from magweld.frontend.state.lookup import Found, Lookup, instance_dict
from magweld.frontend.state.mro import ABSENT, is_class, is_immutable, target_slot
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_immutable_value, is_scalar

_NATIVE_GETTERS: Final = (types.GetSetDescriptorType, types.MemberDescriptorType)

# Native getters whose result follows from the identity or the type of the object.
_FIXED_GETTERS: Final = frozenset(
    {
        object.__dict__["__class__"],
        *(v for v in vars(types.CodeType).values() if type(v) in _NATIVE_GETTERS),
    }
)
_CODE_FIELDS: Final = ("code", "defaults", "kwdefaults")
# Native getters of parts that code may replace; guarded by value.
_FIELD_GETTERS: Final = frozenset(
    {
        deque.__dict__["maxlen"],
        *(type.__dict__[f"__{name}__"] for name in "module bases doc".split()),
        *(types.FunctionType.__dict__[f"__{n}__"] for n in _CODE_FIELDS),
        *(
            vars(kind)[f"__{name}__"]
            for kind in (type, types.FunctionType)
            for name in "name qualname annotations type_params".split()
            if f"__{name}__" in vars(kind)  # the last one is new in 3.12
        ),
    }
)
_FOUND_IN_CLASS: Final = frozenset(
    {
        Lookup.METHOD,
        Lookup.NATIVE_METHOD,
        Lookup.CLASS_VALUE,
        Lookup.STATIC,
        Lookup.CLASS_METHOD,
        Lookup.PYTHON_DESCRIPTOR,
        Lookup.PYTHON_HOOK,
        Lookup.ABSENT,
    }
)


def load_attribute(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_ATTR with and without the method flag of 3.12, LOAD_METHOD of 3.11."""
    found = read_attribute(observer, stack[-1], row.argval)
    if found.how is Lookup.ABSENT:
        observer.after = _refuse_surprise


def _refuse_surprise(observer: Observer, stack: list[Any]) -> None:
    # Nothing was to be found, yet no exception was raised.
    raise StopRecordingError("native-attribute", "found by native code")


def load_super_attribute(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_SUPER_ATTR of 3.12: `super(cls, self).name` in one instruction."""
    start, receiver = stack[-2], stack[-1]
    if not is_class(start):
        raise StopRecordingError("native-attribute", "super")
    read_attribute(observer, super(start, receiver), row.argval)


def read_attribute(observer: Observer, obj: Any, name: str) -> Found:
    """Record what `obj.name` reads, adopt the bound method it may make.

    Returns:
        How the attribute is found.
    """
    found = observer.session.graph.plans.lookup(obj, name)
    read_found(observer, obj, name, found)
    return found


def read_found(observer: Observer, obj: Any, name: str, found: Found) -> None:
    """Record what an attribute access reads that was looked up before."""
    note_lookup(observer.session.graph, obj, name, found)
    _READERS.get(found.how, _read_nothing)(observer, obj, name, found)


def note_lookup(graph: RefGraph, obj: Any, name: str, found: Found) -> None:
    """Record where an attribute was looked for, but not what was made of it."""
    kind = type(obj)
    if kind is super:
        _note_super(graph, obj, name)
        return
    _note_descriptor(graph, note_class(graph, kind, name))
    note_class(graph, kind, "__getattribute__")
    if found.how in (Lookup.PYTHON_HOOK, Lookup.ABSENT):
        note_class(graph, kind, "__getattr__")
    if is_class(obj):
        _note_descriptor(graph, note_class(graph, obj, name))
    elif found.how in _FOUND_IN_CLASS and not is_scalar(obj):
        namespace = namespace_of(graph, obj)
        if namespace is not None:
            read_item(graph, namespace.obj, name)


def _note_descriptor(graph: RefGraph, found: Any) -> None:
    # What has been found in a class decides by its own class whether it binds.
    if found is not ABSENT and not is_immutable(type(found)):
        for name in ("__get__", "__set__", "__delete__"):
            note_class(graph, type(found), name)


def _note_super(graph: RefGraph, proxy: Any, name: str) -> None:
    start: type = super.__dict__["__thisclass__"].__get__(proxy)
    receiver: type = super.__dict__["__self_class__"].__get__(proxy)
    note_class(graph, receiver, name, start)


def _read_nothing(observer: Observer, obj: Any, name: str, found: Found) -> None:
    """The lookup itself was all that was read."""


def _read_instance(observer: Observer, obj: Any, name: str, found: Found) -> None:
    graph = observer.session.graph
    namespace = namespace_of(graph, obj)
    assert namespace is not None, "the value was found in an instance dict"
    read_item(graph, namespace.obj, name)


def see_through(graph: RefGraph, obj: Any) -> Any:
    """Record which program a traced one stands for; return it, or `obj` itself."""
    slot = target_slot(type(obj))
    if slot is None:
        return obj
    read_slot(graph, obj, slot)
    return see_through(graph, slot.__get__(obj))


def read_slot(graph: RefGraph, obj: Any, descriptor: Any) -> None:
    """Record the value behind a member descriptor, or that it is unset."""
    value = slot_value(obj, descriptor)
    graph.read(graph.require(obj), Kind.SLOT, descriptor, value)


def _read_slot(observer: Observer, obj: Any, name: str, found: Found) -> None:
    if found.value in _FIXED_GETTERS or is_immutable_value(obj):
        observer.after = adopt_top
        return
    read_slot(observer.session.graph, obj, found.value)


def _read_native(observer: Observer, obj: Any, name: str, found: Found) -> None:
    session = observer.session
    if found.value in _FIXED_GETTERS or is_immutable_value(obj):
        observer.after = adopt_top
        return
    if found.value in _FIELD_GETTERS:
        session.graph.read(
            session.graph.require(obj), Kind.FIELD, name, found.value.__get__(obj)
        )
    elif (entry := session.annotations.find(found.value)) is not None:
        session.apply(observer, entry, NativeCall(name, (obj,), {}))
    elif issubclass(found.value.__objclass__, BaseException):
        if not session.graph.require(obj).owned:
            raise StopRecordingError("native-attribute", f"exception.{name}")
        observer.after = adopt_top
    elif name == "__dict__" and not is_class(obj):
        namespace_of(session.graph, obj)
    elif name in ("__doc__", "__annotations__", "__dict__", "__abstractmethods__"):
        raise StopRecordingError("native-attribute", name)
    elif session.operators.is_tensor(type(obj)):
        expect_operator(observer, name)
    else:
        raise StopRecordingError("native-attribute", f"{type(obj).__name__}.{name}")


def expect_operator(
    observer: Observer, name: str, answers: tuple[type, ...] = ()
) -> None:
    """Demand that the current instruction turns out to be a tensor operator.

    Args:
        answers: Types of results that follow from the types of the operands alone.
    """
    operators = observer.session.operators
    serial = operators.serial

    def check(observer: Observer, stack: list[Any]) -> None:
        observer.awaits_operator = ""
        answered = answers and type(stack[-1]) in answers
        if operators.serial == serial and not answered:
            raise StopRecordingError("native-call", name)

    observer.awaits_operator = name
    observer.after = check


def adopt_top(observer: Observer, stack: list[Any]) -> None:
    """Register the result of the last instruction as made by the run."""
    observer.constructing = None
    observer.session.graph.adopt(stack[-1])


def bear_top(observer: Observer, stack: list[Any]) -> None:
    """Register the result of the last instruction, which that has just made."""
    observer.constructing = None
    observer.session.graph.bear(stack[-1])


def _bind_method(observer: Observer, obj: Any, name: str, found: Found) -> None:
    observer.after = _adopt_method


_METHODS: Final = (
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
)


def _adopt_method(observer: Observer, stack: list[Any]) -> None:
    # LOAD_METHOD leaves the function and the receiver apart when it can.
    if type(stack[-1]) in _METHODS:
        observer.session.graph.adopt(stack[-1])


def _read_static(observer: Observer, obj: Any, name: str, found: Found) -> None:
    observer.session.graph.constant(found.value.__func__)
    if type(found.value) is classmethod:
        observer.after = _adopt_method


def _read_tuple(observer: Observer, obj: Any, name: str, found: Found) -> None:
    read_all(observer.session.graph, obj)


def _run_property(observer: Observer, obj: Any, name: str, found: Found) -> None:
    getter = property.__dict__["fget"].__get__(found.value)
    if type(getter) is not types.FunctionType:
        raise StopRecordingError("native-attribute", name)
    observer.session.graph.constant(getter)
    register_function(observer.session, getter)


def _run_descriptor(observer: Observer, obj: Any, name: str, found: Found) -> None:
    graph = observer.session.graph
    getter = note_class(graph, type(found.value), "__get__")
    register_function(observer.session, getter)


def _run_hook(observer: Observer, obj: Any, name: str, found: Found) -> None:
    graph = observer.session.graph
    if type(obj) is types.ModuleType and instance_dict(obj) is not None:
        namespace = namespace_of(graph, obj)
        assert namespace is not None, "a module has a namespace"
        read_item(graph, namespace.obj, "__getattr__")
    graph.constant(found.value)
    entry = observer.session.annotations.find(found.value)
    if entry is None:
        register_function(observer.session, found.value)
    else:
        observer.session.opaque_caller = observer
        call = NativeCall(name, (obj, name), {})
        observer.session.apply(observer, entry, call)


_METHOD_PARTS: Final = {"__func__": Kind.FUNCTION, "__self__": Kind.RECEIVER}


def _read_opaque(observer: Observer, obj: Any, name: str, found: Found) -> None:
    if type(obj) is types.MethodType and name in _METHOD_PARTS:
        part = obj.__func__ if name == "__func__" else obj.__self__
        graph = observer.session.graph
        graph.read(graph.require(obj), _METHOD_PARTS[name], None, part)
        return
    raise StopRecordingError("native-attribute", f"{type(obj).__name__}.{name}")


_READERS: Final = {
    Lookup.INSTANCE: _read_instance,
    Lookup.SLOT: _read_slot,
    Lookup.NATIVE_GETTER: _read_native,
    Lookup.METHOD: _bind_method,
    Lookup.NATIVE_METHOD: _bind_method,
    Lookup.STATIC: _read_static,
    Lookup.CLASS_METHOD: _read_static,
    Lookup.PROPERTY: _run_property,
    Lookup.PYTHON_DESCRIPTOR: _run_descriptor,
    Lookup.PYTHON_HOOK: _run_hook,
    Lookup.TUPLE_FIELD: _read_tuple,
    Lookup.OPAQUE: _read_opaque,
}
