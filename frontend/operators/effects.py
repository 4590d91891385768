"""Owns what operators of a recorded graph do beside making their results."""

from __future__ import annotations

from collections.abc import Iterable

from torch import fx

# Notes of operators that are kept whether or not their results are used.
_KEPT = ("effect", "fallible", "numeric")


def has_effect(node: fx.Node) -> bool:
    """Return whether an operator changes more than tensors and modes of its graph.

    What it writes to memory from before the run, and what it draws, are seen outside.
    """
    return bool(node.meta.get("effect")) and not node.meta.get("internal")


def has_effects(graph: fx.Graph) -> bool:
    """Return whether a recorded graph changes more than tensors of its own."""
    return any(map(has_effect, graph.nodes))


def needed(nodes: Iterable[fx.Node], outputs: Iterable[fx.Node]) -> set[fx.Node]:
    """Return what outputs, effects and exceptions of a graph follow from.

    Args:
        nodes: Operators and inputs of the graph, the last one first.
        outputs: Nodes whose results are used.
    """
    wanted = set(outputs)
    for node in nodes:
        if node in wanted or any(node.meta.get(key) for key in _KEPT):
            wanted.add(node)
            wanted.update(node.all_input_nodes)
    return wanted
