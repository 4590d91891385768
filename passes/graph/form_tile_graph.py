"""Owns form-tile-graph: linalg on tensors becomes operators and edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.diagnostics import PassError
from magweld.dialects.device_attributes import device_attribute
from magweld.dialects.tile_graph import (
    build_connect,
    build_graph,
    build_operator,
    yield_values,
)
from magweld.passes.analysis.cloning import (
    ValueMap,
    captured_values,
    clone_mapped,
    defining_op,
)
from magweld.passes.base import FunctionPass
from magweld.targets import Device, device

# Ops that are cheap to make again where they are used: they hold no data.
_REMATERIALISED = frozenset({"tensor.empty", "arith.constant", "linalg.fill"})
_VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})
_MOVES = frozenset(
    {"tensor.pad", "tensor.extract_slice", "tensor.insert_slice", "tensor.concat"}
)


@dataclass(frozen=True)
class FormTileGraph(FunctionPass):
    """Form one tile graph from the linalg operations of each function.

    Every linalg operation becomes an operator that holds its fills and, for
    convolutions, its padding; slices, pads and concatenations become operators that
    move bytes; reshapes stay views. Every value that one operator makes for another
    passes through a connect at the outermost level of the device.

    Options:
        device: Name of an entry of devices.toml, or "cpu" for this machine.
    """

    name: ClassVar[str] = "form-tile-graph"
    device: str = "cpu"

    def run_on_function(self, function: Any) -> None:
        """Replace the body of `function` by one graph; declarations are left."""
        if function.is_external or _has_graph(function):
            return
        _Former(function, device(self.device)).form()


def _has_graph(function: Any) -> bool:
    return any(
        op.operation.name == "tile_graph.graph"
        for op in function.regions[0].blocks[0].operations
    )


class _Former:
    """Builds the graph of one function beside its old body, then drops that."""

    def __init__(self, function: Any, device: Device) -> None:
        self._function = function
        self._device = device
        self._values = ValueMap()
        self._prologue: dict[Any, Any] = {}
        self._made: set[Any] = set()
        self._names: dict[str, int] = {}

    def form(self) -> None:
        block = self._function.regions[0].blocks[0]
        old = [op.operation for op in block.operations]
        terminator = old.pop()
        results = [value.type for value in terminator.operands]
        with ir.InsertionPoint(terminator), self._function.location:
            graph = build_graph(
                list(block.arguments), results, device_attribute(self._device)
            )
        body = graph.regions[0].blocks[0]
        for outer, inner in zip(block.arguments, body.arguments, strict=True):
            self._values[outer] = inner
        with ir.InsertionPoint(body):
            for op in old:
                self._convert(op)
            with self._function.location:
                yield_values([self._result(v) for v in terminator.operands])
        for position, value in enumerate(graph.results):
            terminator.operands[position] = value
        for op in reversed(old):
            op.erase()

    def _convert(self, op: Any) -> None:
        if op.name in _REMATERIALISED or self._is_private_pad(op):
            self._prologue[op] = op
            return
        for names, convert in self._table():
            if op.name in names or (names is _LINALG and op.name.startswith("linalg.")):
                convert(op)
                return
        with op.location:
            raise PassError(
                f"'{op.name}' op cannot be part of a tile graph",
                pass_name=FormTileGraph.name,
            )

    def _table(self) -> tuple[tuple[frozenset[str], Callable[[Any], None]], ...]:
        return (
            (_VIEWS, self._view),
            (frozenset({"func.call"}), self._call),
            (_MOVES, self._operator),
            (_LINALG, self._operator),
        )

    def _is_private_pad(self, op: Any) -> bool:
        """A pad that only convolutions read is part of them."""
        if op.name != "tensor.pad":
            return False
        users = [use.owner.operation.name for use in op.results[0].uses]
        return all(".conv" in name or "_conv_" in name for name in users)

    def _view(self, op: Any) -> None:
        self._ensure_values(op.operands)
        clone_mapped(op, self._values)

    def _call(self, op: Any) -> None:
        self._ensure_values(op.operands)
        clone = clone_mapped(op, self._values)
        self._made.update(clone.results)

    def _ensure_values(self, operands: Any) -> None:
        for value in operands:
            self._result(value)

    def _result(self, value: Any) -> Any:
        """The graph value of `value`; what holds no data becomes an operator."""
        if value not in self._values:
            producer = defining_op(value)
            if producer is None or producer.operation not in self._prologue:
                raise PassError("value from outside of the function")
            if producer.operation.name == "arith.constant":
                clone_mapped(producer, self._values)
            else:
                self._operator(producer.operation)
        return self._values[value]

    def _operator(self, op: Any) -> None:
        prologue, inputs = self._closure(op)
        with op.location:
            operands = [self._edge(value) for value in inputs]
            operator = build_operator(
                self._name_of(op), operands, [r.type for r in op.results]
            )
            inner = ValueMap()
            body = operator.regions[0].blocks[0]
            for value, argument in zip(inputs, body.arguments, strict=True):
                inner[value] = argument
            with ir.InsertionPoint(body):
                for helper in prologue:
                    clone_mapped(helper, inner)
                root = clone_mapped(op, inner)
                yield_values(list(root.results))
        for old, new in zip(op.results, operator.results, strict=True):
            self._values[old] = new
            self._made.add(new)

    def _closure(self, op: Any) -> tuple[list[Any], list[Any]]:
        """Return the prologue to clone with `op`, in order, and the tensors it reads."""
        prologue: dict[Any, None] = {}
        inputs: dict[Any, None] = {}

        def visit(user: Any) -> None:
            for value in [*user.operands, *captured_values(user)]:
                producer = defining_op(value)
                key = producer.operation if producer is not None else None
                if key in self._prologue and not self._is_data(key):
                    visit(key)
                    prologue[key] = None
                else:
                    inputs[value] = None

        visit(op)
        return list(prologue), list(inputs)

    @staticmethod
    def _is_data(op: Any) -> bool:
        """A tensor constant that is no splat is data: it stays outside."""
        if op.name != "arith.constant" or not isinstance(
            op.results[0].type, ir.RankedTensorType
        ):
            return False
        value = ir.DenseElementsAttr(op.attributes["value"])
        return not value.is_splat

    def _edge(self, value: Any) -> Any:
        """The operand for `value`: through a connect when an operator made it."""
        new = self._result(value)
        if not self._comes_from_operator(new):
            return new
        return build_connect(new, self._device.levels[0].name).results[0]

    def _comes_from_operator(self, value: Any) -> bool:
        producer = defining_op(value)
        while producer is not None and producer.operation.name in _VIEWS:
            value = producer.operation.operands[0]
            producer = defining_op(value)
        return value in self._made

    def _name_of(self, op: Any) -> str:
        """A name that is unique in the graph: the operation's own and a number."""
        base = op.name.rpartition(".")[2]
        number = self._names.get(base, 0)
        self._names[base] = number + 1
        return f"{base}_{number}"


_LINALG = frozenset({"linalg"})
