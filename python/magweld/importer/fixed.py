"""Owns the evaluation of operators that have the same operands in all calls."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from magweld.importer.nodes import is_random, placeholders, replace_by, values_of
from magweld.importer.operators import is_generated


def evaluate_fixed(
    graph: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    count: int,
    fixed: frozenset[int],
) -> list[torch.Tensor]:
    """Replace operators without generated code by what they make, in place.

    Only those are that read nothing but fixed inputs, constants and what follows from
    these. What they read is evaluated with them.

    Args:
        graph: A functional ATen graph with a tensor without data in each `meta["val"]`.
        inputs: The tensors of its placeholders.
        count: How many of these are inputs; constants follow.
        fixed: Positions of inputs that are the same in all calls.

    Returns:
        The tensors for new placeholders, which follow the others.
    """
    places = placeholders(graph.graph)
    known = {
        node: tensor
        for position, (node, tensor) in enumerate(zip(places, inputs, strict=True))
        if position in fixed or position >= count
    }
    evaluator = _Evaluator(graph, known)
    made: list[torch.Tensor] = []
    for node in list(graph.graph.nodes):
        if not evaluator.follows(node) or not _is_wanted(node):
            continue
        value = evaluator.value(node).contiguous()
        with graph.graph.inserting_after(places[-1]):
            place = graph.graph.placeholder(f"fixed_{len(made)}")
        place.meta["val"] = values_of(node).contiguous()
        places.append(place)
        replace_by(node, place)
        evaluator.keep(place, value)
        made.append(value)
    return made


def _is_wanted(node: fx.Node) -> bool:
    """Tell whether a node is a tensor that torch would have to make in each call."""
    source = node.args[0] if node.target is operator.getitem else node
    assert isinstance(source, fx.Node), f"{node} is a part of nothing"
    is_tensor = isinstance(values_of(node), torch.Tensor)
    return is_tensor and bool(node.users) and not is_generated(source)


class _Evaluator:
    """Evaluates nodes, each once, through torch."""

    def __init__(
        self, graph: fx.GraphModule, known: dict[fx.Node, torch.Tensor]
    ) -> None:
        self._graph = graph
        self._values: dict[fx.Node, Any] = dict(known)
        self._fixed = set(known)
        for node in graph.graph.nodes:
            is_operator = node.op == "call_function" and not is_random(node)
            if node.op == "get_attr" or (
                is_operator and self._fixed >= {*node.all_input_nodes}
            ):
                self._fixed.add(node)

    def follows(self, node: fx.Node) -> bool:
        """Tell whether a node is an operator whose operands are all known."""
        return node.op == "call_function" and node in self._fixed

    def keep(self, node: fx.Node, value: torch.Tensor) -> None:
        """Know the value of a new node."""
        self._values[node] = value

    def value(self, node: fx.Node) -> Any:
        """Return what a node makes."""
        if node not in self._values:
            self._values[node] = self._made(node)
        return self._values[node]

    def _made(self, node: fx.Node) -> Any:
        if node.op == "get_attr":
            return operator.attrgetter(str(node.target))(self._graph)
        # Operands come first in the graph: each but the wanted ones is made here.
        args, kwargs = pytree.tree_map_only(
            fx.Node, self.value, (node.args, node.kwargs)
        )
        assert callable(node.target), f"{node} is no operator"
        with torch.no_grad():
            return node.target(*args, **kwargs)
