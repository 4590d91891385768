"""Owns reaching the instance dict of an object, where its attributes lie."""

from __future__ import annotations

import _thread
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.nodes import Kind, Node
from magweld.frontend.state.refgraph import RefGraph


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
