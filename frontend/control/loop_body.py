"""Owns one iteration of a loop as a graph that takes the number of the iteration."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from torch import fx

from magweld.frontend.control.iterations import Iterations
from magweld.frontend.control.merge import DifferenceError
from magweld.frontend.expressions.expressions import (
    Expression,
    InductionSource,
    Leaf,
    Literal,
    SizeSource,
    topological,
)
from magweld.frontend.operators.kinds import NEUTRAL, VALUES, operator_of
from magweld.graphs.control_operators import NUMBER_FUNCTIONS

if TYPE_CHECKING:
    from magweld.frontend.lifting.state import Lifting

# Positions in which a number is an index of one element: the shape of the result is
# the same for all.
_INDICES: Final = {operator.getitem: 1, operator.setitem: 1, "select": 2}


class Body:
    """The graph of one iteration.

    Attributes:
        copies: Which of its nodes stands for an operator or operand of the loop.
        inputs: Operands of the loop that are the same in all iterations.
        module: The graph, when it is finished.
    """

    def __init__(
        self,
        lifting: Lifting,
        iterations: Iterations,
        carried: Sequence[fx.Node],
    ) -> None:
        self._scalars = lifting.scalars
        self._iterations = iterations
        self._graph = fx.Graph()
        self._number = self._graph.placeholder("number")
        self.copies = {node: self._graph.placeholder(node.name) for node in carried}
        self.inputs: list[fx.Node] = []
        self._first = self._graph._root.next
        own = {*iterations.template, *carried}
        used = [n for node in iterations.template for n in node.all_input_nodes]
        for node in dict.fromkeys(used):
            if node not in own and not self._is_inner(node):
                self._input(node)
        self._take_row()
        self._numbers: dict[Expression, Any] = {}
        for node in iterations.template:
            self._copy(node)

    def finish(self, results: Sequence[fx.Node]) -> fx.GraphModule:
        """Return the graph, with nodes of the loop as its results."""
        for node in results:
            if node not in self.copies:
                self._input(node)
        self._graph.output(tuple(self.copies[node] for node in results))
        self._graph.lint()
        return fx.GraphModule({}, self._graph)

    def _take_row(self) -> None:
        cut, row = self._iterations.loop.rows, self._iterations.row
        if cut is None or row is None:
            return
        source: Any = cut.args[0]
        dim = cut.args[1] if len(cut.args) > 1 else cut.kwargs.get("dim", 0)
        args = (self._input(source), dim, self._number)
        self.copies[row] = self._graph.call_method("select", args)

    def _is_inner(self, node: fx.Node) -> bool:
        if node is self._iterations.row:
            return True
        expression = self._scalars.expressions.get(node)
        return expression is not None and self._iterations.depends(expression)

    def _input(self, node: fx.Node) -> fx.Node:
        if node not in self.copies:
            with self._graph.inserting_before(self._after_inputs()):
                self.copies[node] = self._graph.placeholder(node.name)
            self.inputs.append(node)
        return self.copies[node]

    def _after_inputs(self) -> fx.Node:
        nodes = self._graph.nodes
        found = next((node for node in nodes if node.op != "placeholder"), None)
        return self._graph._root if found is None else found

    def _copy(self, node: fx.Node) -> None:
        for used in node.all_input_nodes:
            expression = self._scalars.expressions.get(used)
            if expression is not None and self._iterations.depends(expression):
                self._check_position(node, used, expression)
                self.copies[used] = self._value(expression)
        args = fx.map_arg(node.args, self.copies.__getitem__)
        kwargs = fx.map_arg(node.kwargs, self.copies.__getitem__)
        copy = self._graph.create_node(node.op, node.target, args, kwargs)
        copy.meta = dict(node.meta)
        self.copies[node] = copy

    def _check_position(
        self, node: fx.Node, number: fx.Node, expression: Expression
    ) -> None:
        # Sizes are those of each iteration; the number itself must not form anything.
        parts = topological([expression])
        leaves = [part for part in parts if isinstance(part, Leaf)]
        if not any(isinstance(leaf.source, InductionSource) for leaf in leaves):
            return
        name, index = operator_of(node), _INDICES.get(node.target)
        for position, arg in [*enumerate(node.args), *node.kwargs.items()]:
            if not _holds(arg, number):
                continue
            indexes = position == index and (
                arg is number or (type(arg) is tuple and number in arg)
            )
            if (
                not indexes
                and name not in NEUTRAL
                and position not in VALUES.get(name, ())
            ):
                raise DifferenceError("its number decides about shapes")

    def _value(self, expression: Expression) -> Any:
        known = self._numbers.get(expression)
        if known is None:
            known = self._numbers[expression] = self._compute(expression)
        return known

    def _compute(self, expression: Expression) -> Any:
        if isinstance(expression, Literal):
            return expression.value
        if not self._iterations.depends(expression):
            return self._input(self._scalars.node_of(expression))
        if isinstance(expression, Leaf):
            source = expression.source
            if isinstance(source, SizeSource):
                args = (self.copies[source.of], source.dim)
                return self._graph.call_method("size", args)
            return self._number
        if expression.function not in NUMBER_FUNCTIONS:
            raise DifferenceError("a function of its number")
        operands = tuple(map(self._value, expression.operands))
        return self._graph.call_function(expression.function, operands)


def _holds(arg: Any, node: fx.Node) -> bool:
    found: list[fx.Node] = []
    fx.map_arg(arg, found.append)
    return node in found
