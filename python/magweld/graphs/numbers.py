"""Owns numbers among the inputs of a graph: held by the graph instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import fx

from magweld.graphs.control_operators import (
    ControlOperator,
    IfOperator,
    WhileOperator,
)


def without_numbers(module: fx.GraphModule) -> fx.GraphModule:
    """Return a graph whose sub-graphs take no numbers: they hold them."""
    if not any(map(_takes_numbers, module.graph.nodes)):
        return module
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    for node in module.graph.nodes:
        copy = values[node] = graph.node_copy(node, values.__getitem__)
        target: object = node.target
        if isinstance(target, ControlOperator) and _takes_numbers(node):
            numbers = {
                place - target.leading: operand
                for place, operand in enumerate(node.args)
                if not isinstance(operand, fx.Node)
            }
            copy.target = target.over(
                [without_numbers(with_inputs(b, numbers)) for b in target.bodies]
            )
            copy.args = tuple(arg for arg in copy.args if isinstance(arg, fx.Node))
    return fx.GraphModule(module, graph)


def _takes_numbers(node: fx.Node) -> bool:
    target: object = node.target
    if not isinstance(target, IfOperator | WhileOperator):
        return False
    return not all(isinstance(operand, fx.Node) for operand in node.args)


def with_inputs(body: fx.GraphModule, numbers: Mapping[int, object]) -> fx.GraphModule:
    """Return a graph with some of its inputs, by place, replaced by numbers."""
    graph = fx.Graph()
    values: dict[fx.Node, Any] = {}
    for place, node in enumerate(body.graph.nodes):
        if node.op == "output":
            graph.output(fx.map_arg(node.args[0], values.__getitem__))
        elif place in numbers:
            values[node] = numbers[place]
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
    return fx.GraphModule({}, graph)
