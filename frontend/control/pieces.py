"""Owns pieces of a recorded graph: what a trial ran, made into a graph of its own."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx

from magweld.frontend.operators.effects import needed


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
            copy = self._graph.node_copy(node, self._copies.__getitem__)
            copy.meta.setdefault("origin", node)
            self._copies[node] = copy
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
        found = {self._copies[node] for node in outputs if node in self._copies}
        wanted = needed(reversed(self._graph.nodes), found)
        return [node for node in self.nodes if self._copies[node] in wanted]

    def whole(self, outputs: Sequence[fx.Node]) -> tuple[fx.Graph, list[fx.Node]]:
        """Return a graph of all operators, also those not needed, and its operands."""
        through = [node for node in outputs if node not in self.nodes]
        operands = list(dict.fromkeys((*self.operands, *through)))
        return self._cut(operands, self.nodes, outputs), operands

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
        return fx.GraphModule({}, self._cut(operands, self.needed(outputs), outputs))

    def _cut(
        self,
        operands: Sequence[fx.Node],
        nodes: Sequence[fx.Node],
        outputs: Sequence[fx.Node],
    ) -> fx.Graph:
        graph = fx.Graph()
        mapping: dict[fx.Node, fx.Node] = {}
        results: dict[fx.Node, fx.Node] = {}
        for operand in operands:
            results[operand] = placeholder = graph.placeholder(operand.name)
            if operand in self._copies:
                mapping[self._copies[operand]] = placeholder
        for node in nodes:
            copy = self._copies[node]
            results[node] = mapping[copy] = graph.node_copy(copy, mapping.__getitem__)
        graph.output(tuple(results[node] for node in outputs))
        graph.lint()
        return graph


def origin_of(node: fx.Node) -> fx.Node:
    """Return the operator of the recorded graph that a node is a copy of."""
    origin: fx.Node = node.meta.get("origin", node)
    return origin


def effects_of(nodes: Sequence[fx.Node]) -> dict[str, object]:
    """Return what a node that stands for some operators does, and whether it raises."""
    fallible = any(node.meta.get("fallible") for node in nodes)
    found: dict[str, object] = {"fallible": True} if fallible else {}
    acting = [node for node in nodes if node.meta.get("effect")]
    if not acting:
        return found
    written: frozenset[int] = frozenset()
    for node in acting:
        written |= node.meta.get("writes", frozenset())
    internal = all(node.meta.get("internal") for node in acting)
    draws = any(node.meta.get("draws") for node in acting)
    found.update(effect=True, writes=written, internal=internal, draws=draws)
    return found
