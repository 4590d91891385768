"""Owns form-tile-graph: linalg on tensors becomes operators and edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, ir, linalg
from magweld.dialects.device_attributes import device_attribute
from magweld.dialects.tile_graph import (
    build_connect,
    build_operator,
    captured_values,
    is_tile_graph,
    yield_values,
)
from magweld.passes.analysis.operator_model import REMATERIALISED, is_rematerialised
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import ValueMap, clone_mapped, defining_op
from magweld.passes.ir.pads import is_part_of_windows
from magweld.passes.ir.slices import is_read_in_place
from magweld.passes.ir.static_shapes import require_static_shapes
from magweld.passes.ir.utils import located_error
from magweld.targets import Device, device

_VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})
_MOVES = frozenset(
    {"tensor.pad", "tensor.extract_slice", "tensor.insert_slice", "tensor.concat"}
)


@dataclass(frozen=True)
class FormTileGraph(FunctionPass):
    """Form one tile graph from the linalg operations of each function.

    Every linalg operation becomes an operator that holds its fills, the slices that it
    reads through, and, for convolutions, its padding; concatenations become operators
    that read slices in place, too, and whose tiles hold a part of all that is joined;
    other slices and pads become operators that move bytes; reshapes stay views. Every
    value that one operator makes for another passes through a connect at the outermost
    level of the device.

    Options:
        device: "cpu" for this machine, "a100", "my.toml#mine", ...: docs/devices.md.
    """

    name: ClassVar[str] = "form-tile-graph"
    device: str = "cpu"

    def run_on_function(self, function: Any) -> None:
        """Replace the operations of `function`; one that is a graph is left."""
        if is_tile_graph(function):
            return
        require_static_shapes(function.operation)
        _Former(function, device(self.device)).form()


class _Former:
    """Builds the operators of one function before its old body, then drops that."""

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
        for argument in block.arguments:
            self._values[argument] = argument
        with ir.InsertionPoint(old[0] if old else terminator):
            for op in old:
                self._convert(op)
            results = [self._result(value) for value in terminator.operands]
        for position, value in enumerate(results):
            terminator.operands[position] = value
        for op in reversed(old):
            op.erase()
        attribute = device_attribute(self._device)
        self._function.attributes["tile_graph.device"] = attribute

    def _convert(self, op: Any) -> None:
        if op.name.startswith("linalg.") and not op.results:
            raise located_error(op, "cannot be part of a tile graph: it has no result")
        is_helper = op.name in REMATERIALISED and is_rematerialised(op.results[0])
        if is_helper or is_part_of_windows(op) or is_read_in_place(op):
            self._prologue[op] = op
            return
        for names, convert in self._table():
            if op.name in names or (names is _LINALG and op.name.startswith("linalg.")):
                convert(op)
                return
        raise located_error(op, "cannot be part of a tile graph")

    def _table(self) -> tuple[tuple[frozenset[str], Callable[[Any], None]], ...]:
        return (
            (_VIEWS, self._view),
            (frozenset({"func.call"}), self._call),
            (frozenset({"arith.constant"}), self._view),
            (_MOVES, self._operator),
            (_LINALG, self._operator),
        )

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
            producer = value.owner.operation
            if producer.name == "arith.constant":
                clone_mapped(producer, self._values)
            elif producer.name == "tensor.empty":
                self._values[value] = self._zeros(producer)
            else:
                self._operator(producer)
        return self._values[value]

    def _zeros(self, empty: Any) -> Any:
        """A tensor of any content has to be a tensor all the same."""
        type_ = ir.RankedTensorType(empty.results[0].type)
        with empty.location:
            operator = build_operator(self._name_of(empty), [type_])
            with ir.InsertionPoint(operator.body.blocks[0]):
                zero = arith.ConstantOp(type_.element_type, _zero(type_.element_type))
                init = empty.clone().results[0]
                yield_values([linalg.fill(zero.result, outs=[init])])
        self._made.add(operator.operation.results[0])
        return operator.operation.results[0]

    def _operator(self, op: Any) -> None:
        prologue, inputs = self._closure(op)
        scalars = [v for v in inputs if not isinstance(v.type, ir.RankedTensorType)]
        if scalars:
            raise located_error(op, f"reads {scalars[0].type}, expected tensors only")
        with op.location:
            inner = ValueMap()
            for value in inputs:
                inner[value] = self._edge(value)
            operator = build_operator(self._name_of(op), [r.type for r in op.results])
            with ir.InsertionPoint(operator.body.blocks[0]):
                for helper in prologue:
                    clone_mapped(helper, inner)
                root = clone_mapped(op, inner)
                yield_values(list(root.results))
        for old, new in zip(op.results, operator.operation.results, strict=True):
            self._values[old] = new
            self._made.add(new)

    def _closure(self, op: Any) -> tuple[list[Any], list[Any]]:
        """Return the prologue to clone with `op`, in order, and what it reads."""
        prologue: dict[Any, None] = {}
        inputs: dict[Any, None] = {}

        def visit(user: Any) -> None:
            for value in [*user.operands, *captured_values(user)]:
                producer = defining_op(value)
                key = producer.operation if producer is not None else None
                if key in prologue:
                    continue
                if key in self._prologue:
                    visit(key)
                    prologue[key] = None
                else:
                    inputs[value] = None

        visit(op)
        return list(prologue), list(inputs)

    def _edge(self, value: Any) -> Any:
        """The operand for `value`: through a connect when an operator made it."""
        new = self._result(value)
        if not self._comes_from_operator(new):
            return new
        return build_connect(new, self._device.levels[0].name).output

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


def _zero(type_: Any) -> Any:
    is_float = isinstance(type_, ir.FloatType)
    return ir.FloatAttr.get(type_, 0.0) if is_float else ir.IntegerAttr.get(type_, 0)


_LINALG = frozenset({"linalg"})
