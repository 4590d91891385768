"""Owns rules of displays: lists, tuples, sets and dicts that the program writes out."""

from __future__ import annotations

from types import CellType
from typing import Any

from magweld.frontend.monitor.code_table import Row, cell_names, variadic_names
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import adopt_top, bear_top
from magweld.frontend.rules.containers import read_mapping
from magweld.frontend.rules.hashing import read_keys_among, take_keys
from magweld.frontend.rules.names import load_closure
from magweld.frontend.rules.protocols import iterate, take_elements
from magweld.frontend.state.contents import (
    Extent,
    before_write,
    builtin_base,
    read_all,
    read_key,
)
from magweld.frontend.state.set_writes import note_set_operand, note_set_write


def each_part(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_FAST_LOAD_FAST of 3.13 and its kin: what their parts do with variables."""
    results = []
    for part in row.parts:
        if part.handler is not None:
            part.handler(observer, part, stack)
            if observer.after is not None:
                results.append((observer.after, part.depth + 1))
                observer.after = None

    def take(observer: Observer, stack: list[Any]) -> None:
        for after, depth in results:
            after(observer, stack[:depth])

    observer.after = take if results else None


def build(observer: Observer, row: Row, stack: list[Any]) -> None:
    """BUILD_LIST and its kin, MAKE_FUNCTION: the result is made by the run."""
    observer.after = bear_top


def build_set(observer: Observer, row: Row, stack: list[Any]) -> None:
    """BUILD_SET: the elements."""
    read_keys_among(observer, stack[len(stack) - row.arg :])
    observer.after = bear_top


def build_map(observer: Observer, row: Row, stack: list[Any]) -> None:
    """BUILD_MAP: keys and values in turn."""
    read_keys_among(observer, stack[len(stack) - 2 * row.arg :: 2])
    observer.after = bear_top


def list_to_tuple(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LIST_TO_TUPLE: the display of positional arguments is complete."""
    if observer.session.graph.require(stack[-1]).external:
        read_all(observer.session.graph, stack[-1])
    observer.after = bear_top


def load_local(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_FAST of a cell, which 3.13 does for a closure, or of a variadic argument."""
    held = observer.session.reader.slot(observer.frame, row.arg)
    if row.argval in cell_names(observer.code) and type(held) is CellType:
        load_closure(observer, row, stack)
    elif row.argval in variadic_names(observer.code):
        _load_variadic(observer)


def _load_variadic(observer: Observer) -> None:
    """Take note of `*args` or `**kwargs`, which the call has made."""
    began = observer.began

    def bear(observer: Observer, stack: list[Any]) -> None:
        graph = observer.session.graph
        if graph.find(stack[-1]) is None:
            graph.bear(stack[-1], began)

    observer.after = bear


def load_constant(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_CONST of a tuple, or on 3.14 a slice: functions of a module share it."""
    observer.session.graph.literal(row.argval)


def load_common(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_COMMON_CONSTANT of 3.14, a builtin; LOAD_LOCALS of 3.12, that of a class."""
    observer.after = adopt_top


def append(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LIST_APPEND, SET_ADD, MAP_ADD: a display or comprehension takes an element."""
    taken = 2 if row.opname == "MAP_ADD" else 1
    if row.opname != "LIST_APPEND":
        read_key(observer.session.graph, stack[-taken])
    display = stack[-row.arg - taken]
    _write_display(observer, display)
    if row.opname == "SET_ADD":
        note_set_write(observer.session.graph, display, set.add, stack[-1])


def _write_display(observer: Observer, display: Any) -> None:
    # It is from before the run when the run began in the middle of a display.
    if observer.session.graph.require(display).external:
        tail = type(display) is list
        extent = Extent.TAIL if tail else Extent.WHOLE
        before_write(observer.session.graph, display, extent)


def extend(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LIST_EXTEND, SET_UPDATE: a display takes the elements of an iterable."""
    source = stack[-1]
    _write_display(observer, stack[-row.arg - 1])
    if builtin_base(source) not in (None, dict):
        take_elements(observer, source)
    else:
        iterate(observer, source)
    if row.opname == "SET_UPDATE":
        display = stack[-row.arg - 1]
        take_keys(observer, source, display)
        note_set_operand(observer.session.graph, display, set.update, source)


def merge(observer: Observer, row: Row, stack: list[Any]) -> None:
    """DICT_UPDATE, DICT_MERGE: a display takes the entries of a mapping."""
    _write_display(observer, stack[-row.arg - 1])
    read_mapping(observer, stack[-1])
