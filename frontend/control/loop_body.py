"""Owns the graph of a `for` loop: one iteration, and who takes its results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torch import fx

from magweld.frontend.control.comparison import DifferenceError
from magweld.frontend.control.iterations import Iterations
from magweld.frontend.expressions.expressions import (
    Expression,
    InductionSource,
    Leaf,
    Literal,
    SizeSource,
    topological,
)
from magweld.frontend.operators.kinds import NEUTRAL, VALUES, operator_of
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.graphs.control_operators import NUMBER_FUNCTIONS, joined

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
            if number not in _nodes_in(arg):
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


# Operators that take a list of tensors of any length.
JOINERS: Final = frozenset({"cat", "concat", "concatenate", "stack"})


@dataclass(frozen=True)
class Rewiring:
    """How operators behind a loop take its results.

    Attributes:
        inner: Operators that go.
        finals: Which result stands for one of them.
        runs: Which result stands for the elements of a list that they are.
    """

    inner: set[fx.Node]
    finals: dict[fx.Node, int]
    runs: dict[tuple[fx.Node, ...], int]

    def check(self, recorder: OperatorRecorder) -> None:
        """Refuse what takes something else of the loop.

        Raises:
            DifferenceError: Something does.
        """
        for node in recorder.graph.nodes:
            if node not in self.inner and self.inner & set(node.all_input_nodes):
                self._check_user(node)
        assert recorder.operands is not None, "the loop is a lifted one"
        for query in recorder.operands.queries:
            for arg in (*query.args, *query.kwargs.values()):
                if isinstance(arg, (tuple, list)) and self.inner & set(_nodes_in(arg)):
                    raise DifferenceError("a question about a list")

    def check_list(self, items: Sequence[fx.Node]) -> None:
        """Refuse a list that holds something else of the loop.

        Raises:
            DifferenceError: It does.
        """
        found = self._run_in(items)
        if found is None or self.inner & set(self._outside(items)) - set(self.finals):
            raise DifferenceError("a list with other tensors of the loop")

    def _check_user(self, node: fx.Node) -> None:
        known = self.finals.keys()
        name = operator_of(node)
        lists = 0

        def allowed(arg: Any) -> bool:
            nonlocal lists
            if isinstance(arg, list) and self._run_in(arg) is not None:
                lists += 1
                return all(allowed(rest) for rest in self._outside(arg))
            if isinstance(arg, (list, tuple)):
                return all(map(allowed, arg))
            used = set(_nodes_in(arg)) & self.inner
            return used <= known

        args = [list(node.args)] if node.target is joined else node.args
        if not all(map(allowed, (*args, *node.kwargs.values()))):
            raise DifferenceError("a tensor of an iteration is used")
        if lists and name not in JOINERS and node.target is not joined:
            raise DifferenceError(f"a list is taken by {name}")

    def _run_in(self, items: Sequence[Any]) -> tuple[int, int, int] | None:
        """Return begin, end and result of a run of collected tensors in a list."""
        for run, result in self.runs.items():
            for begin in range(len(items) - len(run) + 1):
                if all(a is b for a, b in zip(items[begin:], run, strict=False)):
                    return begin, begin + len(run), result
        return None

    def _outside(self, items: Sequence[Any]) -> list[Any]:
        found = self._run_in(items)
        return (
            list(items) if found is None else [*items[: found[0]], *items[found[1] :]]
        )

    def content(self, items: Sequence[Any], parts: Sequence[fx.Node]) -> list[Any]:
        """Return elements of a list with the results in place."""
        found = self._run_in(items)
        if found is None:
            return [parts[self.finals[i]] if i in self.finals else i for i in items]
        begin, end, result = found
        before, behind = items[:begin], items[end:]
        return [
            *self.content(before, parts),
            parts[result],
            *self.content(behind, parts),
        ]

    def apply(self, recorder: OperatorRecorder, parts: Sequence[fx.Node]) -> None:
        """Let all users take the results."""
        for node in list(recorder.graph.nodes):
            if node not in self.inner and self.inner & set(node.all_input_nodes):
                if node.target is joined:
                    node.args = tuple(self.content(node.args, parts))
                    continue
                replace = self._replacement(recorder, node, parts)
                node.args = tuple(map(replace, node.args))
                node.kwargs = {key: replace(arg) for key, arg in node.kwargs.items()}

    def _replacement(
        self, recorder: OperatorRecorder, user: fx.Node, parts: Sequence[fx.Node]
    ) -> Callable[[Any], Any]:
        def replace(arg: Any) -> Any:
            if isinstance(arg, list) and self._run_in(arg) is not None:
                content = self.content(arg, parts)
                with recorder.graph.inserting_before(user):
                    return recorder.graph.call_function(joined, tuple(content))
            if isinstance(arg, (list, tuple)):
                return type(arg)(map(replace, arg))
            return fx.map_arg(
                arg, lambda n: parts[self.finals[n]] if n in self.finals else n
            )

        return replace


def _nodes_in(arg: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.map_arg(arg, found.append)
    return found
