"""Owns arguments of tensor operators that hold lifted values."""

from __future__ import annotations

from typing import Any, Final

from torch import fx

from magweld.frontend.lifting.expressions import Expression, Literal
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.operators.tensors import TensorMap
from magweld.frontend.state.contents import elements, read_all
from magweld.frontend.state.refgraph import Kind

_SLICE: Final = ("start", "stop", "step")


class LiftedTensors(TensorMap):
    """Tensors and lifted numbers of a run, and the nodes that stand for them.

    Attributes:
        lifting: The lifted values of the run.
        scalars: Inputs of the graph that are numbers.
    """

    def __init__(self, graph: fx.Graph) -> None:
        super().__init__(graph)
        self.lifting: Lifting | None = None
        self.scalars: dict[fx.Node, Expression] = {}
        self._scalar_nodes: dict[Expression, fx.Node] = {}

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
        lifting.pin(found)
        return self.scalar(found)

    def _convert_lifted(self, lifting: Lifting, obj: Any) -> Any:
        assert self.session is not None, "recording needs a session"
        graph = self.session.graph
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
                lifting.pin(found)
                converted.append(self.scalar(found))
        return converted if isinstance(obj, list) else tuple(converted)
