"""Owns graphs without loops: each iteration is written out again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch import fx

from magweld.graphs.control_operators import (
    NUMBER_FUNCTIONS,
    ForOperator,
    joined,
)

# Graphs with more iterations than this are not worth their size.
MAX_ITERATIONS: Final = 64

Values = dict[fx.Node, Any]


def has_loops(module: fx.GraphModule) -> bool:
    """Return whether a graph has loops over ranges."""
    return any(isinstance(node.target, ForOperator) for node in module.graph.nodes)


def iterations_in(module: fx.GraphModule) -> int | None:
    """Return how many iterations the loops of a graph have, None if that varies."""
    total = 0
    for node in module.graph.nodes:
        if isinstance(node.target, ForOperator):
            bounds: Any = node.args[:3]
            if not all(isinstance(bound, int) for bound in bounds):
                return None
            total += len(range(*bounds))
    return total


@dataclass(frozen=True)
class Unrolled:
    """A graph with its loops written out.

    Attributes:
        module: The graph; it returns a flat tuple of tensors.
        pattern: What the results of the original are made of: numbers of results,
            or lists of such.
    """

    module: fx.GraphModule
    pattern: tuple[Any, ...]

    def wrap(self, program: Callable[..., Any]) -> Callable[..., Any]:
        """Return a program with the results of the original, from one of the graph."""
        if all(isinstance(item, int) for item in self.pattern):
            if self.pattern == tuple(range(len(self.pattern))):
                return program

        def run(*inputs: Any) -> tuple[Any, ...]:
            flat = program(*inputs)
            return tuple(
                flat[item] if isinstance(item, int) else [flat[i] for i in item]
                for item in self.pattern
            )

        return run


def unroll(module: fx.GraphModule) -> Unrolled:
    """Write out the loops of a graph whose numbers of iterations are fixed."""
    graph = fx.Graph()
    values: Values = {}
    pattern: tuple[Any, ...] = ()
    for node in module.graph.nodes:
        if node.op == "output":
            pattern = _output(graph, node, values)
        else:
            values[node] = _value(graph, node, values)
    graph.lint()
    return Unrolled(fx.GraphModule({}, graph), pattern)


def _value(graph: fx.Graph, node: fx.Node, values: Values) -> Any:
    if node.op == "placeholder":
        return graph.placeholder(node.name)
    args = _mapped(node.args, values)
    if isinstance(node.target, ForOperator):
        return _loop(graph, node.target, args)
    if node.target is joined:
        return joined(*args)
    if node.target is operator.getitem and isinstance(args[0], tuple):
        return args[0][args[1]]
    kwargs = _mapped(node.kwargs, values)
    if node.target in NUMBER_FUNCTIONS and not any(_nodes(args)):
        assert callable(node.target), "a function of numbers"
        return node.target(*args)
    copy = graph.create_node(node.op, node.target, args, kwargs)
    copy.meta = dict(node.meta)
    return copy


def _mapped(arg: Any, values: Mapping[fx.Node, Any]) -> Any:
    return fx.map_arg(arg, values.__getitem__)


def _nodes(args: Any) -> list[bool]:
    return [isinstance(arg, fx.Node) for arg in args]


def _loop(graph: fx.Graph, target: ForOperator, args: Sequence[Any]) -> tuple[Any, ...]:
    def step(*inputs: Any) -> Any:
        values: Values = {}
        given = iter(inputs)
        for node in target.step.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "output":
                return _mapped(node.args[0], values)
            else:
                values[node] = _value(graph, node, values)
        raise AssertionError("a graph has an output")

    results: tuple[Any, ...] = target.over([step])(*args)
    return results


def _output(graph: fx.Graph, node: fx.Node, values: Values) -> tuple[Any, ...]:
    results = _mapped(node.args[0], values)
    flat: dict[fx.Node, int] = {}

    def number(item: Any) -> Any:
        if isinstance(item, (list, tuple)):
            return [number(part) for part in item]
        return flat.setdefault(item, len(flat))

    pattern = tuple(map(number, results))
    graph.output(tuple(flat))
    return pattern
