"""Owns attributes of classes that a run writes: their old value, reads behind it."""

from __future__ import annotations

from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.mro import ABSENT, find_own, is_immutable, mro
from magweld.frontend.state.nodes import Kind, slot_of
from magweld.frontend.state.refgraph import RefGraph


def before_class_write(graph: RefGraph, cls: type, name: str) -> None:
    """Prepare a write to, or the deletion of, an attribute in a class's own namespace.

    Raises:
        StopRecordingError: The interpreter takes more than the attribute from it.
    """
    if is_immutable(cls) or (name.startswith("__") and name.endswith("__")):
        # Special names decide about slots of the type, whoever looks them up.
        raise StopRecordingError("class-write", f"{cls.__qualname__}.{name}")
    node = graph.constant(cls)
    if graph.lifting is not None:
        graph.lifting.note_store(slot_of(cls, Kind.CLASS_ATTRIBUTE, name))
    graph.changes(node)
    before = find_own(cls, name)
    graph.check_dropped(before)
    graph.slot_snapshots.setdefault((id(cls), name), before)
    node.written.setdefault(name, False)
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
