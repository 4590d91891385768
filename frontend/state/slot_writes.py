"""Owns writes to single slots: of cells and instances, and attributes of classes."""

from __future__ import annotations

from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.mro import ABSENT, find_own, is_immutable, mro
from magweld.frontend.state.nodes import Kind, Node, slot_of
from magweld.frontend.state.refgraph import RefGraph


def before_slot_write(
    graph: RefGraph, node: Node, kind: Kind, key: Any, before: Any
) -> None:
    """Prepare a write to a slot of an object that holds nothing else of this kind.

    Args:
        node: The object: a cell, a class, an instance with slots.
        key: Which slot; None where there is but one, which is then determined.
        before: What is in it now, or ABSENT.
    """
    if graph.lifting is not None:
        graph.lifting.note_store(slot_of(node.obj, kind, key))
    graph.changes(node)
    if node.external:
        graph.check_dropped(before)
        graph.slot_snapshots.setdefault((id(node.obj), key), before)
        if key is None:
            node.owned = True
        else:
            node.written.setdefault(key, False)


def before_class_write(graph: RefGraph, cls: type, name: str) -> None:
    """Prepare a write to, or the deletion of, an attribute in a class's own namespace.

    Raises:
        StopRecordingError: The interpreter takes more than the attribute from it.
    """
    if is_immutable(cls) or (name.startswith("__") and name.endswith("__")):
        # Special names decide about slots of the type, whoever looks them up.
        raise StopRecordingError("class-write", f"{cls.__qualname__}.{name}")
    node, before = graph.constant(cls), find_own(cls, name)
    before_slot_write(graph, node, Kind.CLASS_ATTRIBUTE, name, before)
    graph.class_names.add(name)


def read_written_class(
    graph: RefGraph, cls: type, name: str, start: type | None
) -> Any:
    """Record a class lookup of a name that the run has written to some class.

    What the whole lookup found before the run tells nothing now, so the classes that
    were not written are asked one by one.

    Returns:
        What is found now, or ABSENT.
    """
    order = mro(cls)
    graph.constant(order)
    graph.read(graph.constant(cls), Kind.FIELD, "__mro__", order)
    for base in order[0 if start is None else order.index(start) + 1 :]:
        node = graph.constant(base)
        value = find_own(base, name)
        if name not in node.written:
            if not is_immutable(base):
                graph.read(node, Kind.CLASS_ATTRIBUTE, (None, name), value)
        elif value is not ABSENT:
            graph.read(node, Kind.CLASS_ATTRIBUTE, name, value)
        if value is not ABSENT:
            return value
    return ABSENT
