"""Owns arguments of tensor operators that hold lifted values."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import fx

from magweld.frontend.expressions.expressions import Expression, Literal
from magweld.frontend.lifting.shadow import elements_met
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.operators.tensors import TensorMap
from magweld.frontend.state.contents import BOUNDS, elements, read_all
from magweld.frontend.state.nodes import Kind

_CUTS: Final = ("unbind", torch.unbind)


class Scalars:
    """Lifted numbers that operators take, and the inputs of the graph that hold them.

    Attributes:
        expressions: The inputs of the graph that are numbers.
        shaping: Expressions that may decide about shapes.
        same: Node of the argument that an operator returned, by its own node.
        lengths: Number of results, of operators with several.
        rows: Operators that cut a tensor into rows, by the id of the tuple of rows.
    """

    def __init__(self, lifting: Lifting, tensors: TensorMap) -> None:
        self._lifting = lifting
        self._tensors = tensors
        self.expressions: dict[fx.Node, Expression] = {}
        self.shaping: set[Expression] = set()
        self.same: dict[fx.Node, fx.Node] = {}
        self.lengths: dict[fx.Node, int] = {}
        self.rows: dict[int, fx.Node] = {}
        self._value_only = False
        self._nodes: dict[Expression, fx.Node] = {}

    def note_result(self, node: fx.Node, result: Any) -> None:
        """Take note of what an operator has given, before it is bound to its node."""
        if isinstance(result, torch.Tensor):
            known = self._tensors.find(result)
            if known is not None:
                self.same[node] = known
        elif isinstance(result, (tuple, list)):
            self.lengths[node] = len(result)
            if node.target in _CUTS:
                self.rows[id(result)] = node

    def part(self, value: Any, value_only: bool) -> Any:
        """Return an argument as the graph holds it.

        Args:
            value_only: Whether no shape depends on numbers in it.
        """
        before, self._value_only = self._value_only, value_only
        try:
            return self._tensors.convert(value)
        finally:
            self._value_only = before

    def shape(self, expression: Expression) -> None:
        """Take note that shapes may depend on a number; only integers can be lifted."""
        if self._value_only:
            return
        if type(expression.value) is int:
            self.shaping.add(expression)
        else:
            self._lifting.pin(expression)

    def node_of(self, expression: Expression) -> Any:
        """Return what stands for a number in the graph: a node, or a constant."""
        if isinstance(expression, Literal):
            return expression.value
        node = self._nodes.get(expression)
        if node is None:
            node = self._tensors.graph.placeholder(f"number_{len(self.expressions)}")
            node.meta["number"] = expression.value
            self._nodes[expression] = node
            self.expressions[node] = expression
        return node

    def find(self, expression: Expression) -> fx.Node | None:
        """Return the node that stands for a number, None if nothing has used it."""
        return self._nodes.get(expression)

    def drop(self, node: fx.Node) -> None:
        """Forget a number that nothing uses any more."""
        expression = self.expressions.pop(node)
        del self._nodes[expression]
        self._tensors.graph.erase_node(node)

    def convert(self, obj: Any) -> Any:
        """Return a slice, tuple or list as the graph holds it."""
        if isinstance(obj, slice):
            return slice(*(self._field(obj, slot) for slot in BOUNDS[slice]))
        return self._sequence(obj)

    def _field(self, obj: slice, slot: Any) -> Any:
        found = self._lifting.at(obj, Kind.SLOT, slot)
        return self._item(slot.__get__(obj), found)

    def _item(self, value: Any, found: Expression | None) -> Any:
        if found is None:
            return self._tensors.convert(value)
        self.shape(found)
        return self.node_of(found)

    def _sequence(self, obj: Any) -> Any:
        lifting, convert = self._lifting, self._tensors.convert
        graph = self._tensors.session.graph
        loops, inside = lifting.loops, lifting.inside(obj)
        if loops is not None and loops.note_whole_use(obj) and not inside:
            return [convert(item) for item in obj]
        first = len(lifting.reads)
        if graph.find(obj) is not None:
            read_all(graph, obj)
        met = elements_met(obj, len(obj), lifting.reads[first:])
        lifting.reads[first:] = [
            read for read in lifting.reads[first:] if read[0][0] != id(obj)
        ]
        items = [self._item(v, met.get(n)) for n, v in enumerate(elements(obj))]
        return items if isinstance(obj, list) else tuple(items)
