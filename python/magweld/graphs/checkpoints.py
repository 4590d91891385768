"""Owns checkpointed parts of a graph: autograd computes their results anew."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from torch import fx
from torch.utils.checkpoint import checkpoint

from magweld.graphs.lazy_code import LazyGraphModule

# Notes at a node to which part of the program it belongs.
_PART: Final = "checkpoint"


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a program that is checkpointed.

    Attributes:
        preserves: Whether it draws the same random numbers when it runs anew.
        given: Nodes of the recorded graph that it gets as arguments.
    """

    preserves: bool
    given: tuple[fx.Node, ...]


class CheckpointOperator:
    """Runs a sub-graph of which autograd keeps the arguments, and not what it makes.

    Attributes:
        body: The sub-graph; it returns a tuple of tensors.
        given: How many of its operands are arguments; the others are there anyhow.
        preserves: Whether it draws the same random numbers when it runs anew.
    """

    def __init__(self, body: fx.GraphModule, given: int, preserves: bool) -> None:
        self.__name__ = self.__qualname__ = "checkpoint_operator"
        self.body = body
        self.given = given
        self.preserves = preserves

    def __call__(self, *operands: Any) -> Any:
        """Return a tuple of tensors."""
        given, others = operands[: self.given], operands[self.given :]

        def run(*arguments: Any) -> Any:
            return self.body.forward(*arguments, *others)

        return checkpoint(
            run, *given, use_reentrant=False, preserve_rng_state=self.preserves
        )

    def __repr__(self) -> str:
        return self.__name__


def note_part(nodes: Iterable[fx.Node], part: Part) -> None:
    """Note that nodes are a part of the program."""
    for node in nodes:
        node.meta[_PART] = part


def outline_parts(graph: fx.Graph, copies: Mapping[fx.Node, Any]) -> None:
    """Make each part that nodes are noted to belong to one operator, in place.

    Args:
        copies: What stands in the graph for the nodes of the recorded one.
    """
    moved: dict[Any, fx.Node] = {}
    nodes = [node for node in graph.nodes if node.op != "placeholder"]
    for part, group in groupby(nodes, key=lambda node: node.meta.get(_PART)):
        if part is not None:
            known = [copies.get(node) for node in part.given]
            given = {moved.get(node, node) for node in known}
            moved |= _outline(graph, list(group), given, part.preserves)


def _outline(
    graph: fx.Graph, nodes: Sequence[fx.Node], given: set[Any], preserves: bool
) -> dict[Any, fx.Node]:
    """Make nodes one operator; return what takes the place of its results."""
    inside = set(nodes)
    taken = dict.fromkeys(
        operand
        for node in nodes
        for operand in node.all_input_nodes
        if operand not in inside
    )
    operands = sorted(taken, key=lambda node: node not in given)
    results = [node for node in nodes if any(user not in inside for user in node.users)]
    body = fx.Graph()
    copies = {operand: body.placeholder(operand.name) for operand in operands}
    for node in nodes:
        copies[node] = body.node_copy(node, copies.__getitem__)
    body.output(tuple(copies[node] for node in results))
    with graph.inserting_after(nodes[-1]):
        module, count = LazyGraphModule({}, body), len(given.intersection(operands))
        target = CheckpointOperator(module, count, preserves)
        call = graph.call_function(target, tuple(operands))
    last, made = call, {}
    for number, node in enumerate(results):
        with graph.inserting_after(last):
            last = graph.call_function(operator.getitem, (call, number))
        last.meta = {key: note for key, note in node.meta.items() if key != _PART}
        node.replace_all_uses_with(last)
        made[node] = last
    for node in reversed(nodes):
        graph.erase_node(node)
    return made


def checkpointed(node: fx.Node) -> tuple[fx.GraphModule, ...]:
    """Return the sub-graph of a node that is a part, none for any other."""
    target: object = node.target
    return (target.body,) if isinstance(target, CheckpointOperator) else ()
