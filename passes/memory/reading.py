"""Owns the reading of a tile graph: its operations become nodes with their rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from magweld.bindings import ir
from magweld.dialects.tile_graph import element_bytes, root_operation
from magweld.passes.analysis.graph_body import source_value
from magweld.passes.analysis.operator_model import (
    inputs_of,
    operator_model,
    root_accesses,
)
from magweld.passes.ir.slices import sliced_operand, static_slice
from magweld.passes.memory.demands import (
    Concat,
    Nest,
    Pad,
    Part,
    Regroup,
    Rule,
    Slice,
    Window,
)
from magweld.passes.memory.graph import Graph, Node, Tensor
from magweld.passes.tiling.regions import Access, LinearIndex, OperatorKind

VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})
_TERMINATORS = frozenset({"func.return", "gpu.yield"})


@dataclass
class ReadGraph:
    """What was read: a graph, with the value of each tensor and node.

    Attributes:
        tensors: Of the graph.
        nodes: Of the graph.
        values: The value of each tensor, where it is made.
        operations: The operation of each node.
        outputs: Of the graph.
    """

    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    operations: list[Any] = field(default_factory=list)
    outputs: tuple[int, ...] = ()

    @property
    def graph(self) -> Graph:
        """The graph as plain data."""
        return Graph(tuple(self.tensors), tuple(self.nodes), self.outputs)


def read_graph(container: Any) -> ReadGraph:
    """Read the region of a tile graph without subgraphs, or of a subgraph.

    What comes from outside is free.
    """
    reader = _Reader()
    for op in container.operation.regions[0].blocks[0].operations:
        reader.visit(op.operation)
    return reader.read


class _Reader:
    def __init__(self) -> None:
        self.read = ReadGraph()
        self._numbers: dict[Any, int] = {}

    def _add(self, value: Any, *, free: bool = False) -> int:
        type_ = ir.RankedTensorType(value.type)
        number = len(self.read.tensors)
        self.read.tensors.append(Tensor(tuple(type_.shape), element_bytes(type_), free))
        self.read.values.append(value)
        self._numbers[value] = number
        return number

    def visit(self, op: Any) -> None:
        """Read one operation; connects and what holds no data are none."""
        if op.name == "tile_graph.operator":
            self._operator(op)
        elif op.name in VIEWS:
            self._node(op, list(op.operands), _regroup(op), is_view=True)
        elif op.name == "func.call":
            self._node(op, list(op.operands), None)
        elif op.name in _TERMINATORS:
            self.read.outputs = tuple(self._number(v) for v in op.operands)

    def _number(self, value: Any) -> int:
        source = source_value(value)
        if source not in self._numbers:
            self._add(source, free=True)
        return self._numbers[source]

    def _operator(self, op: Any) -> None:
        inputs = inputs_of(op)
        model = operator_model(op)
        rule = None
        if len(op.results) == 1 and _have_elements([*inputs, *op.results]):
            rule = _rule(op, inputs)
        self._node(
            op,
            inputs,
            rule,
            flops=max(1, model.flops),
            brings_result=_is_library(op) and model.kind is OperatorKind.CONVOLUTION,
        )

    def _node(
        self, op: Any, inputs: list[Any], rule: Rule | None, **facts: Any
    ) -> None:
        operands = tuple(self._number(v) for v in inputs)
        results = tuple(self._add(v) for v in op.results)
        self.read.nodes.append(Node(operands, results, rule, **facts))
        self.read.operations.append(op)


def _is_library(operator: Any) -> bool:
    if "implementation" not in operator.attributes:
        return False
    return bool(ir.StringAttr(operator.attributes["implementation"]).value == "library")


def _have_elements(values: list[Any]) -> bool:
    return all(0 not in ir.RankedTensorType(v.type).shape for v in values)


def _regroup(op: Any) -> Rule | None:
    expands = op.name == "tensor.expand_shape"
    larger = op.results[0] if expands else op.operands[0]
    groups = tuple(
        tuple(ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group))
        for group in ir.ArrayAttr(op.attributes["reassociation"])
    )
    shape = tuple(ir.RankedTensorType(larger.type).shape)
    return Regroup(groups, shape, expands) if 0 not in shape else None


def _rule(operator: Any, inputs: list[Any]) -> Rule | None:
    root = root_operation(operator)
    make = _MOVES.get(root.name, _nest)
    return make(operator, root, inputs)


def _pad(operator: Any, root: Any, inputs: list[Any]) -> Rule | None:
    source = root.operands[0]
    low = _static_low(root)
    if inputs != [source] or low is None:
        return None
    return Pad(tuple(ir.RankedTensorType(source.type).shape), low)


def _concat(operator: Any, root: Any, inputs: list[Any]) -> Rule | None:
    dim = ir.IntegerAttr(root.attributes["dim"]).value
    parts = []
    for value in root.operands:
        taken = sliced_operand(value, inputs)
        if taken.source not in inputs:
            return None
        length = int(ir.RankedTensorType(value.type).shape[dim])
        box = Slice(taken.offsets, (1,) * len(taken.offsets), taken.kept)
        is_whole = taken.source == value
        number = inputs.index(taken.source)
        parts.append(Part(number, length, None if is_whole else box))
    return Concat(dim, tuple(parts), len(inputs))


def _slice(operator: Any, root: Any, inputs: list[Any]) -> Rule | None:
    found = static_slice(root)
    if found is None or inputs != [found.source]:
        return None
    return Slice(found.offsets, (1,) * len(found.offsets), found.kept)


_MOVES: dict[str, Callable[[Any, Any, list[Any]], Rule | None]] = {
    "tensor.concat": _concat,
    "tensor.extract_slice": _slice,
    "tensor.pad": _pad,
}


def _nest(operator: Any, root: Any, inputs: list[Any]) -> Rule | None:
    model = operator_model(operator)
    if not model.tileable:
        return None
    windows = []
    accesses = root_accesses(root)
    for value, access in zip(root.operands, accesses, strict=True):
        if access.argument >= 0:
            window = _window(value, access, inputs)
            if window is None:
                return None
            windows.append(window)
    gathered = tuple(
        (read.argument, read.shape) for read in model.reads if read.gathered
    )
    result = tuple(_loop(expr) for expr in model.writes[0].index)
    return Nest(model.extents, result, tuple(windows), len(inputs), gathered)


def _loop(index: LinearIndex | None) -> int | None:
    return index.terms[0][0] if index is not None and index.terms else None


def _window(value: Any, access: Access, inputs: list[Any]) -> Window | None:
    index = tuple(expr for expr in access.index if expr is not None)
    shape = tuple(ir.RankedTensorType(inputs[access.argument].type).shape)
    # Indices of a padded operand may lie before it already.
    return Window(access.argument, shape, index) if len(index) == len(shape) else None


def _static_low(pad: Any) -> tuple[int, ...] | None:
    """What a pad adds in front of each dimension, if that is known."""
    amounts = [
        tuple(ir.DenseI64ArrayAttr(pad.attributes[f"static_{side}"]))
        for side in ("low", "high")
    ]
    unknown = ir.ShapedType.get_dynamic_size()
    if any(unknown in side or min(side) < 0 for side in amounts):
        return None
    return amounts[0]
