"""Owns lookups in classes: what a run found there, or that it found nothing."""

from __future__ import annotations

from typing import Any

from magweld.frontend.state.mro import (
    ABSENT,
    find_after,
    find_in_mro,
    is_immutable,
    mro,
)
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.plans import ClassState
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.slot_writes import read_written_class
from magweld.frontend.state.values import is_scalar


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
