"""Owns subscripts, iteration and unpacking."""

from __future__ import annotations

import operator
import types
from collections import defaultdict
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import (
    adopt_top,
    bear_top,
    expect_operator,
    read_slot,
)
from magweld.frontend.rules.calls import call_object
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.rules.iterators import check_iterator
from magweld.frontend.rules.operators import is_plain
from magweld.frontend.rules.protocols import (
    is_number,
    iterate,
    read_base,
    read_fields,
    read_referent,
    read_value,
    take_elements,
)
from magweld.frontend.state.contents import (
    SEQUENCES,
    Extent,
    before_write,
    builtin_base,
    note_last_key,
    read_all,
    read_index,
    read_item,
)
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.natives import check_buffer_write, is_buffer
from magweld.frontend.state.values import is_scalar


def read_mapping(observer: Observer, source: Any) -> None:
    """Record that all entries of a mapping were used."""
    if type(source) is types.MappingProxyType:
        read_mapping(observer, read_referent(observer.session.graph, source))
        return
    if builtin_base(source) is not dict:
        name = type(source).__qualname__
        raise StopRecordingError("native-operator", f"** of {name}")
    # Some overrides are called, past others the content is taken from the dict itself.
    take_elements(observer, source)


def get_iter(observer: Observer, row: Row, stack: list[Any]) -> None:
    """GET_ITER, GET_YIELD_FROM_ITER."""
    iterate(observer, stack[-1])
    source = stack[-1]

    def take(observer: Observer, stack: list[Any]) -> None:
        # An iterator gives itself.
        (adopt_top if stack[-1] is source else bear_top)(observer, stack)

    observer.after = take


def for_iter(observer: Observer, row: Row, stack: list[Any]) -> None:
    """FOR_ITER: the item lies above the iterator, unless that is exhausted."""
    check_iterator(observer, stack[-1], _uses_item(observer, row))
    depth = len(stack)

    def adopt_item(observer: Observer, stack: list[Any]) -> None:
        if len(stack) == depth + 1:
            observer.session.graph.adopt(stack[-1])

    observer.after = adopt_item


def _uses_item(observer: Observer, row: Row) -> bool:
    """Return whether the variable of a loop is read anywhere."""
    following = observer.rows[min(o for o in row.normal if o > row.offset) >> 1]
    if following is None:
        return True
    store, *rest = following.each
    if store.opname != "STORE_FAST" or any(part.arg == store.arg for part in rest):
        return True
    is_read = observer.session.hooks.is_read
    return is_read(observer.code, min(following.normal), store.arg)


def unpack(observer: Observer, row: Row, stack: list[Any]) -> None:
    """UNPACK_SEQUENCE, UNPACK_EX."""
    source = stack[-1]
    if not is_scalar(source):
        iterate(observer, source)
    below = len(stack) - 1

    def adopt_items(observer: Observer, stack: list[Any]) -> None:
        for item in stack[below:]:
            observer.session.graph.adopt(item)

    observer.after = adopt_items


def binary_subscr(observer: Observer, row: Row, stack: list[Any]) -> None:
    """BINARY_SUBSCR."""
    subscript(observer, stack[-2], stack[-1])


def binary_slice(observer: Observer, row: Row, stack: list[Any]) -> None:
    """BINARY_SLICE of 3.12: container, start, stop."""
    subscript(observer, stack[-3], _slice(observer, stack))


def _slice(observer: Observer, stack: list[Any]) -> slice:
    """Return a slice as an instruction of 3.12 makes it, whose own a method gets."""
    key = slice(stack[-2], stack[-1])
    observer.session.graph.adopt(key)
    observer.constructing = slice
    return key


def subscript(observer: Observer, container: Any, key: Any) -> None:
    """Record what `container[key]` reads."""
    if type(container) is dict:
        read_item(observer.session.graph, container, key)
        return
    if is_scalar(container):
        return
    if observer.session.operators.is_tensor(type(container)):
        expect_operator(observer, "getitem")
        return
    method = special_method(observer, container, "__getitem__")
    if is_python(method):
        return
    if type(container) in _READ_ONLY or is_buffer(container):
        _subscript_value(observer, container, key)
    elif not is_plain(method):
        name = type(container).__qualname__
        raise StopRecordingError("native-operator", f"subscript of {name}")
    elif builtin_base(container) is dict:
        read_entry(observer, container, key)
    else:
        _read_element(observer, container, key)


_READ_ONLY: Final = (range, types.MappingProxyType)


def _subscript_value(observer: Observer, container: Any, key: Any) -> None:
    if type(container) is types.MappingProxyType:
        subscript(observer, read_referent(observer.session.graph, container), key)
        return
    if observer.session.operators.is_tensor(type(key)):
        raise StopRecordingError("tensor-value", "index of an array")
    read_value(observer, container)
    read_value(observer, key)
    observer.after = adopt_top


def read_entry(observer: Observer, container: Any, key: Any) -> None:
    """Record what the subscript of a dict reads, without overrides of it."""
    graph = observer.session.graph
    read_item(graph, container, key)
    if dict.get(container, key, ABSENT) is not ABSENT:
        return
    missing = special_method(observer, container, "__missing__")
    if missing is not ABSENT and not is_python(missing):
        _make_default(observer, container, key)


def _make_default(observer: Observer, container: Any, key: Any) -> None:
    """A missing key of a defaultdict: the factory is called, the result stored."""
    graph = observer.session.graph
    descriptor = defaultdict.__dict__["default_factory"]
    read_slot(graph, container, descriptor)
    factory = descriptor.__get__(container)
    if factory is None:
        return
    before_write(graph, container, Extent.KEY, key)
    observer.calls_native = True
    call_object(observer, factory, (), {})
    called = observer.after or adopt_top

    def take(observer: Observer, stack: list[Any]) -> None:
        # The factory may have written other keys before.
        note_last_key(graph, container)
        called(observer, stack)

    observer.after = take


def _read_element(observer: Observer, container: Any, key: Any) -> None:
    graph = observer.session.graph
    if is_number(key):
        read_base(graph, key)
        read_index(graph, container, operator.index(key))
        return
    if is_python(special_method(observer, key, "__index__")):
        read_all(graph, container)
        return
    if type(key) is slice:
        read_fields(observer, key)
    elif not observer.session.operators.is_tensor(type(key)):
        raise StopRecordingError("native-operator", f"index {type(key).__qualname__}")
    read_all(graph, container)
    observer.after = adopt_top


def store_subscr(observer: Observer, row: Row, stack: list[Any]) -> None:
    """STORE_SUBSCR: value, container, key."""
    write_subscript(observer, stack[-2], stack[-1], stack[-3], "__setitem__")


def store_slice(observer: Observer, row: Row, stack: list[Any]) -> None:
    """STORE_SLICE of 3.12: value, container, start, stop."""
    key = _slice(observer, stack)
    write_subscript(observer, stack[-3], key, stack[-4], "__setitem__")


def delete_subscr(observer: Observer, row: Row, stack: list[Any]) -> None:
    """DELETE_SUBSCR: container, key."""
    write_subscript(observer, stack[-2], stack[-1], None, "__delitem__")


def write_subscript(
    observer: Observer, container: Any, key: Any, value: Any, name: str
) -> None:
    """Record what `container[key] = value` or `del container[key]` changes."""
    if observer.session.operators.is_tensor(type(container)):
        expect_operator(observer, "setitem")
        return
    method = special_method(observer, container, name)
    if is_python(method):
        return
    if is_buffer(container):
        _write_buffer(observer, container, key, value)
        return
    base = builtin_base(container)
    if not is_plain(method) or base not in (dict, *SEQUENCES):
        owner = type(container).__qualname__
        raise StopRecordingError("native-operator", f"{name} of {owner}")
    graph = observer.session.graph
    if base is dict:
        deletes = name == "__delitem__"
        if deletes:
            read_item(graph, container, key)
        extent = Extent.DELETION if deletes else Extent.KEY
        before_write(graph, container, extent, key)
        return
    write_element(observer, container, key, value)


def write_element(observer: Observer, container: Any, key: Any, value: Any) -> None:
    """Record what a sequence does to write or delete an element, or a slice of them."""
    graph = observer.session.graph
    if type(key) is slice:
        read_fields(observer, key)
        if value is not None:
            iterate(observer, value)
    elif is_number(key):
        read_base(graph, key)
    else:
        raise StopRecordingError("native-operator", f"index {type(key).__qualname__}")
    before_write(graph, container, Extent.WHOLE)


def _write_buffer(observer: Observer, container: Any, key: Any, value: Any) -> None:
    for part in (key, value):
        if observer.session.operators.is_tensor(type(part)):
            raise StopRecordingError("tensor-value", "stored in an array")
        read_value(observer, part)
    check_buffer_write(observer.session.graph, container)
