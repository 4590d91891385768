"""Owns arguments of tensor operators that hold lifted values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import torch
from torch import fx

from magweld.frontend.expressions.expressions import Expression, Literal
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.operators.tensors import TensorMap
from magweld.frontend.state.contents import elements, read_all
from magweld.frontend.state.nodes import Kind

_CUTS: Final = ("unbind", torch.unbind)
_SLICE: Final = ("start", "stop", "step")


class LiftedTensors(TensorMap):
    """Tensors and lifted numbers of a run, and the nodes that stand for them.

    Attributes:
        lifting: The lifted values of the run.
        scalars: Inputs of the graph that are numbers.
        shaping: Expressions that may decide about shapes.
        same: Node of the argument that an operator returned, by its own node.
        lengths: Number of results, of operators with several.
        rows: Operators that cut a tensor into rows, by the id of the tuple of rows.
    """

    def __init__(self, graph: fx.Graph) -> None:
        super().__init__(graph)
        self.lifting: Lifting | None = None
        self.scalars: dict[fx.Node, Expression] = {}
        self.shaping: set[Expression] = set()
        self.same: dict[fx.Node, fx.Node] = {}
        self.lengths: dict[fx.Node, int] = {}
        self.rows: dict[int, fx.Node] = {}
        self._value_only = False
        self._scalar_nodes: dict[Expression, fx.Node] = {}

    def tensor(self, node: fx.Node) -> torch.Tensor | None:
        """Return the tensor of a node that made one."""
        return self._tensors.get(node)

    def register(self, node: fx.Node, result: Any) -> bool:
        """See `TensorMap.register`."""
        if isinstance(result, torch.Tensor):
            known = self.find(result)
            if known is not None:
                self.same[node] = known
        elif isinstance(result, (tuple, list)):
            self.lengths[node] = len(result)
            if node.target in _CUTS:
                self.rows[id(result)] = node
        return super().register(node, result)

    def forget(self, nodes: Iterable[fx.Node]) -> None:
        """See `TensorMap.forget`; the tensors are still compared with others."""
        self.hide(nodes)

    def part(self, value: Any, value_only: bool) -> Any:
        """Return an argument as the graph holds it.

        Args:
            value: The argument.
            value_only: Whether no shape depends on numbers in it.
        """
        before, self._value_only = self._value_only, value_only
        try:
            return self.convert(value)
        finally:
            self._value_only = before

    def shape(self, expression: Expression) -> None:
        """Take note that shapes may depend on a number; only integers can be lifted."""
        if self._value_only:
            return
        if type(expression.value) is int:
            self.shaping.add(expression)
        elif self.lifting is not None:
            self.lifting.pin(expression)

    def scalar(self, expression: Expression) -> Any:
        """Return what stands for a number in the graph."""
        if isinstance(expression, Literal):
            return expression.value
        node = self._scalar_nodes.get(expression)
        if node is None:
            node = self.graph.placeholder(f"number_{len(self.scalars)}")
            node.meta["number"] = expression.value
            self._scalar_nodes[expression] = node
            self.scalars[node] = expression
        return node

    def scalar_node(self, expression: Expression) -> fx.Node | None:
        """Return the node that stands for a number, None if nothing has used it."""
        return self._scalar_nodes.get(expression)

    def drop_scalar(self, node: fx.Node) -> None:
        """Forget a number that nothing uses any more."""
        expression = self.scalars.pop(node)
        del self._scalar_nodes[expression]
        self.graph.erase_node(node)

    def convert(self, obj: Any) -> Any:
        """See `TensorMap.convert`."""
        if type(obj) is slice:
            return slice(*(self._field(obj, name) for name in _SLICE))
        if isinstance(obj, (tuple, list)) and self.lifting is not None:
            return self._convert_lifted(self.lifting, obj)
        return super().convert(obj)

    def _field(self, obj: slice, name: str) -> Any:
        descriptor = slice.__dict__[name]
        lifting = self.lifting
        found = None if lifting is None else lifting.at(obj, Kind.SLOT, descriptor)
        if found is None or lifting is None:
            return super().convert(getattr(obj, name))
        self.shape(found)
        return self.scalar(found)

    def _convert_lifted(self, lifting: Lifting, obj: Any) -> Any:
        assert self.session is not None, "recording needs a session"
        graph = self.session.graph
        if lifting.loops.note_whole_use(obj) and not lifting.inside(obj):
            return [self.convert(item) for item in obj]
        first = len(lifting.reads)
        if graph.find(obj) is not None:
            read_all(graph, obj)
        met = {
            slot[2] % len(obj): found
            for slot, found in lifting.reads[first:]
            if slot[:2] == (id(obj), Kind.INDEX)
        }
        lifting.reads[first:] = [
            read for read in lifting.reads[first:] if read[0][0] != id(obj)
        ]
        converted = []
        for index, item in enumerate(elements(obj)):
            found = met.get(index)
            if found is None:
                converted.append(self.convert(item))
            else:
                self.shape(found)
                converted.append(self.scalar(found))
        return converted if isinstance(obj, list) else tuple(converted)
