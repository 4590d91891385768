"""Owns loops in the form that a compiler takes: nothing but tensors of known shape."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import fx

from magweld.diagnostics import UnsupportedError
from magweld.graphs.control_operators import (
    NUMBER_FUNCTIONS,
    CountedOperator,
    ForOperator,
    joined,
)

_NUMBER: Final = "number"
# Operators that take a tensor where they take a number.
_ARITHMETIC: Final = frozenset(
    "add sub mul div eq ne lt le gt ge __rsub__ true_divide rsub".split()
)


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError("control-loop", what, hint="it runs through torch")


def with_counted_loops(
    module: fx.GraphModule, examples: Sequence[torch.Tensor]
) -> fx.GraphModule:
    """Return a graph whose loops carry tensors only.

    Lists that they fill become tensors with one row for each iteration; they must be
    stacked or concatenated, and the numbers of iterations must be fixed.

    Args:
        examples: Tensors of the form of its inputs.

    Raises:
        UnsupportedError: A loop has no such form.
    """
    shapes = _Shapes(module)
    with torch.no_grad():
        shapes.run(*examples)
    return _Rewriter(module, shapes.results).finish()


class _Shapes(fx.Interpreter):
    """Runs a graph and remembers what its loops gave.

    Attributes:
        results: Results of loops, by node.
    """

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.results: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if isinstance(n.target, ForOperator):
            self.results[n] = result
        return result


class _Rewriter:
    def __init__(self, module: fx.GraphModule, results: dict[fx.Node, Any]) -> None:
        self._module = module
        self._results = results
        self._graph = fx.Graph()
        self._values: dict[fx.Node, Any] = {}

    def finish(self) -> fx.GraphModule:
        for node in self._module.graph.nodes:
            if node.op == "output":
                self._graph.output(self._mapped(node.args[0]))
            else:
                self._values[node] = self._value(node)
        self._graph.lint()
        return fx.GraphModule({}, self._graph)

    def _mapped(self, arg: Any) -> Any:
        def value(node: fx.Node) -> Any:
            found = self._values[node]
            if not isinstance(found, (fx.Node, int, float)):
                raise _unsupported("a list that a loop has filled")
            return found

        return fx.map_arg(arg, value)

    def _value(self, node: fx.Node) -> Any:
        if isinstance(node.target, ForOperator):
            return self._loop(node, node.target)
        source: Any = node.args[0] if node.args else None
        if node.target is operator.getitem and isinstance(
            self._values.get(source), tuple
        ):
            return self._values[source][node.args[1]]
        if node.target is joined:
            return [self._values[part] for part in node.all_input_nodes]
        if isinstance(source, fx.Node) and isinstance(self._values[source], list):
            return self._join(node, self._values[source])
        return self._graph.node_copy(node, self._mapped)

    def _join(self, node: fx.Node, parts: list[Any]) -> fx.Node:
        dim: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        stacks = getattr(node.target, "__name__", "") == "stack"
        call = self._graph.call_method
        rows = [
            part.rows if isinstance(part, _Rows) else call("unsqueeze", (part, 0))
            for part in parts
        ]
        if not stacks and not all(isinstance(part, _Rows) for part in parts):
            raise _unsupported("tensors of several sizes")
        joint = self._graph.call_function(torch.cat, (tuple(rows), 0))
        moved = call("movedim", (joint, 0, dim))
        return moved if stacks else call("flatten", (moved, dim, dim + 1))

    def _loop(self, node: fx.Node, target: ForOperator) -> tuple[Any, ...]:
        bounds: Any = node.args[:3]
        if not all(isinstance(bound, int) for bound in bounds):
            raise _unsupported("a loop of any length")
        numbers = range(*bounds)
        operands = [self._mapped(arg) for arg in node.args[3:]]
        results = self._results[node]
        single = target.carried + target.last
        lasts = [self._zeros(r, ()) for r in results[target.carried : single]]
        lists = [self._zeros(r[0], (len(numbers),)) for r in results[single:]]
        given = [*operands[: target.carried], *lasts, *lists]
        rest = operands[target.carried :]
        body = _Body(target, numbers, [r[0].dim() for r in results[single:]], rest)
        tensors = [item for item in rest if isinstance(item, fx.Node)]
        counted = CountedOperator(body.module, len(given), numbers)
        first = self._graph.call_function(torch.tensor, (numbers.start,))
        made = self._graph.call_function(counted, (first, *given, *tensors))
        parts = [
            self._graph.call_function(operator.getitem, (made, index))
            for index in range(len(given))
        ]
        return (*parts[:single], *map(_Rows, parts[single:]))

    def _zeros(self, like: torch.Tensor, rows: tuple[int, ...]) -> fx.Node:
        shape = (*rows, *like.shape)
        return self._graph.call_function(torch.zeros, (shape,), {"dtype": like.dtype})


class _Rows:
    """A tensor with one row for each element of a list."""

    def __init__(self, rows: fx.Node) -> None:
        self.rows = rows


class _Body:
    """One iteration, its number a tensor, its lists tensors to which it writes rows."""

    def __init__(
        self,
        target: ForOperator,
        numbers: range,
        ranks: Sequence[int],
        rest: Sequence[Any],
    ) -> None:
        self._graph = graph = fx.Graph()
        nodes = list(target.step.graph.nodes)
        inputs = [node for node in nodes if node.op == "placeholder"]
        number = graph.placeholder(_NUMBER)
        self._numbers: set[fx.Node] = {number}
        self._values: dict[fx.Node, Any] = {inputs[0]: number}
        for node in inputs[1 : 1 + target.carried]:
            self._values[node] = graph.placeholder(node.name)
        for index in range(target.last):
            graph.placeholder(f"last_{index}")
        lists = [graph.placeholder(f"rows_{index}") for index in range(len(ranks))]
        for node, given in zip(inputs[1 + target.carried :], rest, strict=True):
            holds = isinstance(given, fx.Node)
            self._values[node] = graph.placeholder(node.name) if holds else given
        results = self._run(nodes)
        single = target.carried + target.last
        bounds = (numbers.start, numbers.stop, numbers.step)
        rows = [
            self._with_row(list_, row, rank, number, bounds)
            for list_, row, rank in zip(lists, results[single:], ranks, strict=True)
        ]
        graph.output((*results[:single], *rows))
        graph.lint()
        self.module = fx.GraphModule({}, graph)

    def _run(self, nodes: Sequence[fx.Node]) -> tuple[Any, ...]:
        for node in nodes:
            if node.op == "output":
                results: tuple[Any, ...] = self._mapped(node.args[0])
                return results
            if node.op != "placeholder":
                self._values[node] = self._value(node)
        raise AssertionError("a graph has an output")

    def _with_row(
        self,
        rows: fx.Node,
        row: fx.Node,
        rank: int,
        number: fx.Node,
        bounds: tuple[int, int, int],
    ) -> fx.Node:
        places = self._graph.call_function(torch.arange, bounds)
        here = self._graph.call_method("eq", (places, number))
        here = self._graph.call_method("reshape", (here, (-1, *(1,) * rank)))
        return self._graph.call_function(torch.where, (here, row, rows))

    def _mapped(self, arg: Any) -> Any:
        return fx.map_arg(arg, self._values.__getitem__)

    def _value(self, node: fx.Node) -> Any:
        args, kwargs = self._mapped(node.args), self._mapped(node.kwargs)
        taken = [arg for arg in _nodes(args) if arg in self._numbers]
        if node.target is operator.getitem and isinstance(args[1], tuple):
            taken += [item for item in _nodes(args[1]) if item in self._numbers]
        if not taken:
            return self._graph.create_node(node.op, node.target, args, kwargs)
        rule = self._rule(node)
        result = rule(args)
        if node.target in NUMBER_FUNCTIONS:
            self._numbers.add(result)
        return result

    def _rule(self, node: fx.Node) -> Callable[[tuple[Any, ...]], fx.Node]:
        target: Any = node.target
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        if target is operator.getitem:
            return self._element
        if name == "select":
            return lambda args: self._select(args[0], args[1], args[2])
        if target in NUMBER_FUNCTIONS or name in _ARITHMETIC:
            return lambda args: self._graph.create_node(node.op, target, args)
        raise _unsupported(f"the number of a loop in {name}")

    def _element(self, args: tuple[Any, ...]) -> fx.Node:
        tensor, index = args
        items = index if isinstance(index, tuple) else (index,)
        places = [n for n, item in enumerate(items) if item in _nodes(self._numbers)]
        plain = all(
            item is None or isinstance(item, (int, slice))
            for item in (item for n, item in enumerate(items) if n not in places)
        )
        if len(places) != 1 or not plain:
            raise _unsupported("the number of a loop in an index")
        (place,) = places
        rest = (*items[:place], slice(None), *items[place + 1 :])
        view = self._graph.call_function(operator.getitem, (tensor, rest))
        dim = sum(not isinstance(item, int) for item in items[:place])
        return self._select(view, dim, items[place])

    def _select(self, tensor: Any, dim: int, number: Any) -> fx.Node:
        call = self._graph.call_method
        index = call("reshape", (number, (1,)))
        return call("squeeze", (call("index_select", (tensor, dim, index)), dim))


def _nodes(items: Any) -> list[fx.Node]:
    return [item for item in items if isinstance(item, fx.Node)]
