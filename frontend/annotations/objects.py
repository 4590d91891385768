"""Annotations of native classes beside the containers, and of copies of objects."""

from __future__ import annotations

import _thread
import array
import bisect
import collections
import copyreg
import functools
import heapq
import threading
import types
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Result,
    Rule,
    Use,
    Write,
    members,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import attributes, natives
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.rules.hashing import take_keys
from magweld.frontend.rules.protocols import (
    check_addresses,
    iterate,
    read_referent,
    read_value,
)
from magweld.frontend.state.attributes import namespace_of
from magweld.frontend.state.contents import (
    Extent,
    before_write,
    builtin_base,
    read_all,
    read_key,
)
from magweld.frontend.state.mro import (
    ABSENT,
    class_dict,
    find_in_mro,
    is_immutable,
    python_slots,
)
from magweld.frontend.state.natives import check_buffer_write, read_content
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.set_writes import note_set_operand, note_set_write

_MAKE: Final = Annotation(rest=Use.KEEP, result=Result.NEW)
_MAKE_OF_VALUES: Final = Annotation(rest=Use.VALUE, result=Result.FRESH)
_HEAP: Final = Annotation(
    (Use.VALUE,), rest=Use.VALUE, result=Result.FRESH, write=Write.WHOLE
)


def _from_keys(observer: Observer, call: NativeCall) -> None:
    """`dict.fromkeys`; a subclass would be filled by its own `__setitem__`."""
    if call.args[0] not in (dict, collections.OrderedDict):
        raise StopRecordingError("native-call", call.name)
    iterate(observer, call.args[1])
    observer.after = attributes.adopt_top
    take_keys(observer, call.args[1])


def _update_set(observer: Observer, call: NativeCall) -> None:
    """`set.update`: what it takes lies where its value puts it."""
    target, *sources = call.args
    graph = observer.session.graph
    for source in sources:
        iterate(observer, source)
        take_keys(observer, source, target)
    before_write(graph, target, Extent.WHOLE)
    for source in sources:
        note_set_operand(graph, target, set.update, source)


def _write_set(method: Callable[..., Any]) -> Rule:
    """Return the rule of a method of sets that takes one element, or none."""

    def rule(observer: Observer, call: NativeCall) -> None:
        graph, (target, *items) = observer.session.graph, call.args
        for item in items:
            read_key(graph, item)
        before_write(graph, target, Extent.WHOLE)
        note_set_write(graph, target, method, *items)

    return rule


def _pop_of_set(observer: Observer, call: NativeCall) -> None:
    """`set.pop`, which goes on where it was the last time: nobody can see where."""
    (target,) = call.args
    graph = observer.session.graph
    if graph.require(target).external:
        raise StopRecordingError("native-call", call.name)
    check_addresses(graph, target)
    before_write(graph, target, Extent.WHOLE)
    graph.drained.add(id(target))
    observer.after = attributes.adopt_top


def _count(observer: Observer, call: NativeCall) -> None:
    """What `Counter` counts by."""
    target, source = call.args
    read_value(observer, source)
    before_write(observer.session.graph, target, Extent.WHOLE)


def _make_dict(observer: Observer, call: NativeCall) -> None:
    for source in call.args[1:]:
        read_value(observer, source)
    observer.after = attributes.bear_top


def _through_proxy(method: Any) -> Callable[[Observer, NativeCall], None]:
    """Return the rule of a method of mapping proxies: that of the mapping behind."""

    def rule(observer: Observer, call: NativeCall) -> None:
        mapping = read_referent(observer.session.graph, call.args[0])
        bound = getattr(type(mapping), method)
        natives.call_native(observer, bound, (mapping, *call.args[1:]), call.kwargs)

    return rule


def _read_buffer(observer: Observer, call: NativeCall) -> None:
    for argument in call.args:
        read_value(observer, argument)
    observer.after = attributes.adopt_top


def _write_buffer(observer: Observer, call: NativeCall) -> None:
    for argument in call.args[1:]:
        read_value(observer, argument)
    check_buffer_write(observer.session.graph, call.args[0])
    observer.after = attributes.adopt_top


def is_free(lock: Any) -> bool:
    """Return whether taking a lock would not wait."""
    taken: bool = lock.acquire(False)
    if taken:
        lock.release()
    return taken


def _lock(observer: Observer, call: NativeCall) -> None:
    """A lock that is taken and released by the run leaves no trace.

    A hit does not take it, so it must be free then.
    """
    lock = call.args[0]
    graph = observer.session.graph
    node = graph.require(lock)
    if observer.session.in_branch:
        # A branch on trial may end before it gives the lock back.
        graph.changes(node)
    owned = getattr(lock, "_is_owned", getattr(lock, "locked", None))
    assert owned is not None, "a lock tells whether it is taken"
    before = owned()

    def check() -> None:
        if owned() != before:
            raise StopRecordingError("native-call", "a lock that stays taken")

    if not call.name.endswith(("release", "__exit__")):
        if not is_free(lock):
            raise StopRecordingError("native-call", call.name)
        graph.read(graph.require(lock), Kind.ANSWER, is_free, True)
        graph.checks.append(check)


def _attribute_of_buffer(observer: Observer, call: NativeCall) -> None:
    read_content(observer.session.graph, call.args[0])
    observer.after = attributes.adopt_top


_READS: Final = """
    __add__ __mul__ __rmul__ __len__ __iter__ __contains__ __getitem__ __eq__ __ne__
    count index find tolist tobytes copy decode hex startswith endswith split strip
"""
_WRITES: Final = """
    append extend insert pop remove reverse clear byteswap frombytes fromlist
    __setitem__ __delitem__ __iadd__ __imul__
"""


_LOCKS: Final = (type(threading.RLock()), _thread.LockType)
_OF_PROXY: Final = ("get", "keys", "values", "items", "copy")
_OF_LOCK: Final = "acquire release __enter__ __exit__"
_SCALARS: Final = (int, float, complex, str, bytes)


# Hooks that the generic reduction asks, with what they are when there is none.
_HOOKS: Final = {
    "__reduce__": object.__dict__["__reduce__"],
    "__getstate__": object.__dict__.get("__getstate__", ABSENT),
    "__getnewargs_ex__": ABSENT,
    "__getnewargs__": ABSENT,
}


_NEW_OBJECT_PROTOCOL: Final = 2


def _name_slots(cls: type) -> None:
    # The interpreter notes the names of slots in a class when it needs them first; now
    # is as good, and no Python code runs then.
    plain = type.__dict__["__setattr__"]
    if "__slotnames__" not in class_dict(cls):
        if find_in_mro(type(cls), "__setattr__") is plain:
            copyreg.__dict__["_slotnames"](cls)


def _reduce(observer: Observer, call: NativeCall) -> None:
    """`object.__reduce_ex__`: class, instance dict, slots, items."""
    graph = observer.session.graph
    obj, protocol = call.args
    if protocol < _NEW_OBJECT_PROTOCOL or is_immutable(type(obj)):
        raise StopRecordingError("native-call", call.name)
    if find_in_mro(type(obj), "__getstate__") is _HOOKS["__getstate__"]:
        _name_slots(type(obj))
    for name, absent in _HOOKS.items():
        hook = special_method(observer, obj, name)
        if not is_python(hook) and hook is not absent:
            raise StopRecordingError("native-call", f"{type(obj).__qualname__}.{name}")
    graph.constant(copyreg.__dict__["__newobj__"])
    namespace_of(graph, obj)
    for slot in python_slots(type(obj)):
        attributes.read_slot(graph, obj, slot)
    if builtin_base(obj) is not None:
        read_all(graph, obj)
    observer.after = attributes.adopt_top


OBJECTS: Final[Entries] = (
    (functools.partial, _MAKE),
    (types.MethodType, _MAKE),
    (types.SimpleNamespace, _MAKE),
    (types.MappingProxyType, _MAKE),
    (bytearray, _MAKE_OF_VALUES),
    (array.array, _MAKE_OF_VALUES),
    (collections.defaultdict, _make_dict),
    (dict.__dict__["fromkeys"], _from_keys),
    (set.update, _update_set),
    (set.pop, _pop_of_set),
    (set.add, _write_set(set.add)),
    (set.clear, _write_set(set.clear)),
    (set.discard, _write_set(set.discard)),
    # Where it raises, it has changed nothing.
    (set.remove, _write_set(set.discard)),
    (collections._count_elements, _count),  # type: ignore[attr-defined]
    (types.FunctionType.__get__, _MAKE),
    *((vars(kind)["__new__"], Annotation((Use.KEEP,))) for kind in _SCALARS),
    *((kind.__init__, Annotation((Use.KEEP,))) for kind in _SCALARS),
    *members(bytearray, {_read_buffer: _READS, _write_buffer: _WRITES}),
    *members(array.array, {_read_buffer: _READS, _write_buffer: _WRITES}),
    (array.array.typecode, _attribute_of_buffer),
    (array.array.itemsize, _attribute_of_buffer),
    *members(
        types.MappingProxyType, {_through_proxy(name): name for name in _OF_PROXY}
    ),
    *(entry for kind in _LOCKS for entry in members(kind, {_lock: _OF_LOCK})),
    *((getattr(heapq, name), _HEAP) for name in ("heappush", "heappop", "heapify")),
    (heapq.heappushpop, _HEAP),
    (heapq.heapreplace, _HEAP),
    *(
        (getattr(bisect, name), Annotation(rest=Use.VALUE))
        for name in ("bisect_left", "bisect_right")
    ),
    *((getattr(bisect, name), _HEAP) for name in ("insort_left", "insort_right")),
    (object.__dict__["__reduce_ex__"], _reduce),
)
