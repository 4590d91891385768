"""Owns predicate guards: tensor values that decide about a run, re-evaluated later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from torch import fx

# A predicate is computed on every later call, before anything else runs.
MAX_OPERATORS: Final = 16


@dataclass(frozen=True)
class Predicate:
    """A Python value computed from graph inputs.

    Attributes:
        module: Computes it; no effects, no random numbers.
        placeholders: Nodes of the recorded graph whose tensors it takes, in order.
        value: What it was in the recorded run.
        where: The user's file:line of the read.
        name: The torch call that made the value.
    """

    module: fx.GraphModule
    placeholders: tuple[fx.Node, ...]
    value: bool | int | float
    where: str
    name: str


def build_predicate(
    graph: fx.Graph,
    read: fx.Node,
    value: Any,
    is_stale: Callable[[fx.Node], bool],
) -> Predicate | None:
    """Cut the computation of a value out of a recorded graph.

    Args:
        graph: The graph so far.
        read: The node that makes the value.
        value: What it made.
        is_stale: Tells whether the tensor of a placeholder was written before.

    Returns:
        The predicate; None if it is too large, has effects, or reads written state.
    """
    needed = _ancestors(read)
    if len(needed) > MAX_OPERATORS + len(_placeholders(needed)):
        return None
    if any(node.meta.get("effect") for node in needed):
        return None
    placeholders = [node for node in graph.nodes if node in _placeholders(needed)]
    if any(is_stale(node) for node in placeholders):
        return None
    copy = fx.Graph()
    mapping = {node: copy.placeholder(node.name) for node in placeholders}
    for node in graph.nodes:
        if node in needed and node not in mapping:
            mapping[node] = copy.node_copy(node, mapping.__getitem__)
    copy.output(mapping[read])
    where = read.meta.get("where", "")
    module = fx.GraphModule({}, copy)
    return Predicate(module, tuple(placeholders), value, where, str(read.target))


def _ancestors(read: fx.Node) -> set[fx.Node]:
    needed: set[fx.Node] = set()
    work = [read]
    while work:
        node = work.pop()
        if node not in needed:
            needed.add(node)
            work += node.all_input_nodes
    return needed


def _placeholders(nodes: set[fx.Node]) -> set[fx.Node]:
    return {node for node in nodes if node.op == "placeholder"}
