"""Annotations of what `copy.copy` and `copy.deepcopy` read of objects."""

from __future__ import annotations

import copyreg
from typing import Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Entries, NativeCall
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import attributes
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.state.contents import builtin_base, read_all
from magweld.frontend.state.mro import (
    ABSENT,
    class_dict,
    find_in_mro,
    is_immutable,
    python_slots,
)
from magweld.frontend.state.namespaces import namespace_of

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


COPIES: Final[Entries] = ((object.__dict__["__reduce_ex__"], _reduce),)
