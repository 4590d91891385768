"""Owns the marks on operators of a graph that no backend may have."""

from __future__ import annotations

from typing import Final

from torch import fx

_MARK: Final = "left_to_torch"


def leave_to_torch(node: fx.Node, reason: str) -> None:
    """Mark an operator; the reason is an id of the catalogue."""
    node.meta[_MARK] = reason


def left_to_torch(graph: fx.Graph) -> dict[str, str]:
    """Return the names of the marked operators, with the reasons."""
    marked = [node for node in graph.nodes if _MARK in node.meta]
    return {node.name: node.meta[_MARK] for node in marked if node.op != "placeholder"}
