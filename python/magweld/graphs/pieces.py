"""Owns pieces of graphs: runs of their operators as graphs of their own."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx

Nodes = tuple[fx.Node, ...]


def piece_of(
    graph: fx.GraphModule, group: Sequence[fx.Node]
) -> tuple[fx.GraphModule, Nodes, Nodes]:
    """Return some operators as a graph, with the nodes of what it takes and returns.

    Args:
        graph: The graph that has them.
        group: They, in order. What others read of them is returned.
    """
    own = set(group)
    used = [n for node in group for n in node.all_input_nodes if n not in own]
    inputs = tuple(dict.fromkeys(used))
    outputs = tuple(node for node in group if not own.issuperset(node.users))
    piece = fx.Graph()
    mapping = {node: piece.placeholder(node.name) for node in inputs}
    for node in group:
        mapping[node] = piece.node_copy(node, mapping.__getitem__)
    piece.output(tuple(mapping[node] for node in outputs))
    return fx.GraphModule(graph, piece), inputs, outputs
