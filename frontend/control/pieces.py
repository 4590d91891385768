"""Owns pieces of a recorded graph: what an arm ran, made into a graph of its own."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx


class Piece:
    """Operators that were taken out of a graph.

    Attributes:
        nodes: The operators as they were in the graph, in order.
    """

    def __init__(self, nodes: Sequence[fx.Node]) -> None:
        self.nodes = tuple(nodes)
        self._graph = fx.Graph()
        self._copies: dict[fx.Node, fx.Node] = {}
        for node in nodes:
            for used in node.all_input_nodes:
                if used not in self._copies:
                    self._copies[used] = self._graph.placeholder(used.name)
            self._copies[node] = self._graph.node_copy(node, self._copies.__getitem__)
        own = set(nodes)
        self.operands = tuple(node for node in self._copies if node not in own)
        for node in reversed(self.nodes):
            node.graph.erase_node(node)

    @property
    def all_nodes(self) -> list[fx.Node]:
        """The operators and operands as they were in the graph."""
        return [*self._copies]

    def holds(self, node: fx.Node) -> bool:
        """Return whether a node is one of its operators or operands."""
        return node in self._copies

    def copy_of(self, node: fx.Node) -> fx.Node:
        """Return what stands for an operator or operand in the piece."""
        return self._copies[node]

    @property
    def copies(self) -> list[fx.Node]:
        """The operators as the piece holds them, in order."""
        return [self._copies[node] for node in self.nodes]

    def needed(self, outputs: Sequence[fx.Node]) -> list[fx.Node]:
        """Return the operators that outputs and effects need, in order."""
        wanted = {self._copies[node] for node in outputs if node in self._copies}
        for copy in reversed(self._graph.nodes):
            if copy in wanted or copy.meta.get("effect"):
                wanted.add(copy)
                wanted.update(copy.all_input_nodes)
        return [node for node in self.nodes if self._copies[node] in wanted]

    def used(self, outputs: Sequence[fx.Node]) -> list[fx.Node]:
        """Return the operands that outputs and effects need, outputs included."""
        own = set(self.nodes)
        copies = {self._copies[node] for node in self.needed(outputs)}
        inner = {used for copy in copies for used in copy.all_input_nodes}
        found = [node for node in self.operands if self._copies[node] in inner]
        found += [node for node in outputs if node not in own and node not in found]
        return list(dict.fromkeys(found))

    def module(
        self, operands: Sequence[fx.Node], outputs: Sequence[fx.Node]
    ) -> fx.GraphModule:
        """Return the operators as a graph of their own.

        Args:
            operands: What becomes its inputs; `used` at least.
            outputs: What it returns, operators or operands.
        """
        graph = fx.Graph()
        mapping: dict[fx.Node, fx.Node] = {}
        results: dict[fx.Node, fx.Node] = {}
        for operand in operands:
            results[operand] = placeholder = graph.placeholder(operand.name)
            if operand in self._copies:
                mapping[self._copies[operand]] = placeholder
        for node in self.needed(outputs):
            copy = self._copies[node]
            results[node] = mapping[copy] = graph.node_copy(copy, mapping.__getitem__)
        graph.output(tuple(results[node] for node in outputs))
        graph.lint()
        return fx.GraphModule({}, graph)


def effects_of(nodes: Sequence[fx.Node]) -> dict[str, object]:
    """Return what a node that stands for some operators does to memory."""
    acting = [node for node in nodes if node.meta.get("effect")]
    if not acting:
        return {}
    written: frozenset[int] = frozenset()
    for node in acting:
        written |= node.meta.get("writes", frozenset())
    internal = all(node.meta.get("internal") for node in acting)
    return {"effect": True, "writes": written, "internal": internal}
