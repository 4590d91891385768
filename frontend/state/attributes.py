"""Owns reads and writes of attributes: in classes, instance dicts, single slots."""

from __future__ import annotations

import _thread
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.mro import (
    ABSENT,
    find_after,
    find_in_mro,
    find_own,
    is_immutable,
    mro,
)
from magweld.frontend.state.nodes import Kind, Node, slot_of
from magweld.frontend.state.plans import ClassState
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_scalar


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


def note_class(graph: RefGraph, cls: type, name: str, start: type | None = None) -> Any:
    """Record a class lookup and return what it found, unbound, or ABSENT.

    Args:
        cls: Class whose method resolution order is searched.
        start: Search only behind this base, as `super` does.
    """
    # A class that has not changed since is known, unless reads mean more than guards.
    lifting = graph.lifting
    followed = lifting is not None and lifting.in_loop
    plain = not (followed or graph.choices.merged) and start is None
    if plain and name not in graph.class_names:
        known = graph.plans.noted.get((id(cls), name))
        if known is not None and known[0].stays():
            return known[1]
    value, made = _look_up(graph, cls, name, start)
    if plain and not made:
        graph.plans.noted[id(cls), name] = ClassState(cls), value
    return value


def _look_up(
    graph: RefGraph, cls: type, name: str, start: type | None
) -> tuple[Any, bool]:
    """Return what was found, and whether the run has made or written a class of it."""
    key = name if start is None else (start, name)
    value = find_in_mro(cls, name) if start is None else find_after(cls, start, name)
    made = [base for base in mro(cls) if _is_made(graph, base)]
    if made:
        for base in mro(cls):
            if base not in made:
                note_class(graph, base, name)
        graph.adopt(value)
    elif name in graph.class_names:
        return read_written_class(graph, cls, name, start), True
    elif not all(is_immutable(base) for base in mro(cls)):
        graph.read(graph.constant(cls), Kind.CLASS_ATTRIBUTE, key, value)
    if value is not ABSENT and not is_scalar(value) and graph.find(value) is None:
        graph.constant(value)
    return value, bool(made)


def _is_made(graph: RefGraph, cls: type) -> bool:
    node = graph.find(cls)
    return node is not None and not node.external


def namespace_of(graph: RefGraph, obj: Any) -> Node | None:
    """Return the node of the instance dict of an object, None if it has none."""
    if issubclass(type(obj), _thread._local):
        # Each thread has another one, and a hit may come from any.
        raise StopRecordingError("native-attribute", type(obj).__qualname__)
    namespace = graph.plans.instance_dict(obj)
    if namespace is None:
        return None
    owner = graph.require(obj)
    graph.read(owner, Kind.INSTANCE_DICT, None, namespace)
    graph.bear_part(namespace, obj)
    return graph.require(namespace)
