"""Owns globals, closure variables and imports."""

from __future__ import annotations

import importlib.util
import sys
from types import CellType
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.rules.attributes import read_attribute
from magweld.frontend.state.attributes import before_slot_write
from magweld.frontend.state.contents import Extent, before_write, cell_value, read_item
from magweld.frontend.state.nodes import Kind, Node


def load_global(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_GLOBAL: the globals of the function, then the builtins."""
    frame, name = observer.frame, row.argval
    graph = observer.session.graph
    graph.constant(frame.f_globals)
    read_item(graph, frame.f_globals, name)
    if name not in frame.f_globals:
        graph.constant(frame.f_builtins)
        read_item(graph, frame.f_builtins, name)


def store_global(observer: Observer, row: Row, stack: list[Any]) -> None:
    """STORE_GLOBAL."""
    namespace = observer.frame.f_globals
    observer.session.graph.constant(namespace)
    before_write(observer.session.graph, namespace, Extent.KEY, row.argval)


def delete_global(observer: Observer, row: Row, stack: list[Any]) -> None:
    """DELETE_GLOBAL."""
    namespace = observer.frame.f_globals
    graph = observer.session.graph
    graph.constant(namespace)
    read_item(graph, namespace, row.argval)
    before_write(graph, namespace, Extent.DELETION, row.argval)


def cell_node(observer: Observer, row: Row) -> Node:
    """Return the node of the cell that an instruction names."""
    cell = observer.session.reader.slot(observer.frame, row.arg)
    if cell is NULL or type(cell) is not CellType:
        raise StopRecordingError("unknown-object", f"cell of {row.argval}")
    graph = observer.session.graph
    if graph.find(cell) is None and row.argval in observer.code.co_cellvars:
        # The frame has made it when it began.
        graph.bear(cell, observer.began)
    node = graph.adopt(cell)
    assert node is not None, "a cell is no scalar"
    return node


def load_deref(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_DEREF."""
    node = cell_node(observer, row)
    observer.session.graph.read(node, Kind.CELL, None, cell_value(node.obj))


def load_closure(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_CLOSURE."""
    cell_node(observer, row)


def store_deref(observer: Observer, row: Row, stack: list[Any]) -> None:
    """STORE_DEREF, DELETE_DEREF."""
    node, graph = cell_node(observer, row), observer.session.graph
    before_slot_write(graph, node, Kind.CELL, None, cell_value(node.obj))


def import_name(observer: Observer, row: Row, stack: list[Any]) -> None:
    """IMPORT_NAME of a module that is loaded already: level, fromlist."""
    name = row.argval
    if stack[-2]:
        package = observer.frame.f_globals.get("__package__") or ""
        name = importlib.util.resolve_name("." * stack[-2] + name, package)
    graph = observer.session.graph
    if name not in sys.modules:
        raise StopRecordingError("native-call", f"first import of {name}")
    graph.constant(sys.modules)
    read_item(graph, sys.modules, name)
    read_item(graph, sys.modules, name.partition(".")[0])
    # The import machinery is Python code; with a loaded module it changes nothing.
    observer.session.opaque_caller = observer


def import_from(observer: Observer, row: Row, stack: list[Any]) -> None:
    """IMPORT_FROM."""
    module = stack[-1]
    read_attribute(observer, module, row.argval)
    observer.after = None
    graph = observer.session.graph
    submodule = sys.modules.get(f"{module.__name__}.{row.argval}")
    if submodule is not None:
        graph.constant(submodule)
