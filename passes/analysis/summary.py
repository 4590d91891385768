"""Owns what a scheduled tile graph says, as plain values for people and reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    EXTERNAL,
    captured_values,
    device_of,
    operators_of,
    parallel_extents,
    root_operation,
    type_bytes,
)
from magweld.passes.analysis.control_calls import IfCall, WhileCall, control_of
from magweld.passes.analysis.loop_calls import loop_of
from magweld.passes.analysis.winograd import winograd_tile
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.utils import callee_of, find_function
from magweld.passes.tiling.winograd_forms import (
    ROWS,
)
from magweld.targets.device import Device

_SUBGRAPH = "tile_graph.subgraph"
_CONNECT = "tile_graph.connect"
_STEPS = frozenset({_SUBGRAPH, "func.call"})
# What a summary of a step has a field of its own for.
_ELSEWHERE = ("implementation", "subgraph_name")


@dataclass(frozen=True)
class OperatorSummary:
    """One operator of a step.

    Attributes:
        name: Its `op_name`, unique in the graph.
        root: Name of its root operation.
        nodes: Nodes of the captured graph that it comes from.
        extents: Of its parallel loops.
        tile: What of these one tile computes; empty if it is not tiled.
    """

    name: str
    root: str
    nodes: tuple[str, ...]
    extents: tuple[int, ...]
    tile: tuple[int, ...]


@dataclass(frozen=True)
class EdgeSummary:
    """A tensor on its way from one operator to another.

    Attributes:
        producer: Name of the step, or "argument N", "constant".
        maker: Operator that makes it; "" if the producer has no operators.
        consumer: Name of the step, or "result N".
        reader: Operator that reads it; "" if the consumer has no operators.
        type: Extents and element type, e.g. "8x64xf32".
        bytes: Of the whole tensor.
        level: At which it is kept; the outermost if nothing is said.
        refused: Why it is kept there; "" if it is connected or was never asked.
    """

    producer: str
    maker: str
    consumer: str
    reader: str
    type: str
    bytes: int
    level: str
    refused: str


@dataclass(frozen=True)
class StepSummary:
    """A subgraph or a call, in the order of their running.

    Attributes:
        name: Name of the subgraph, or node of the captured graph that is called.
        kind: "generated", "library", "loop", "if", "while" or "external".
        operators: Of a subgraph.
        edges: Between these.
        plan: Attributes of the subgraph that are numbers, texts, tiles or tables.
        grid: How many tiles there are.
        winograd: Whether it has convolutions with fewer products.
    """

    name: str
    kind: str
    operators: tuple[OperatorSummary, ...] = ()
    edges: tuple[EdgeSummary, ...] = ()
    plan: dict[str, Any] | None = None
    grid: int = 1
    winograd: bool = False


@dataclass(frozen=True)
class GraphSummary:
    """A scheduled tile graph.

    Attributes:
        device: What it was planned for.
        steps: Subgraphs and calls.
        edges: Between steps, and from arguments and to results.
    """

    device: Device
    steps: tuple[StepSummary, ...]
    edges: tuple[EdgeSummary, ...]


def as_plain(summary: Any) -> Any:
    """Return a summary as dicts, lists and tuples; what these hold is not copied."""
    if isinstance(summary, tuple | list):
        return type(summary)(map(as_plain, summary))
    if isinstance(summary, dict):
        return {key: as_plain(value) for key, value in summary.items()}
    if not is_dataclass(summary):
        return summary
    return {one.name: as_plain(getattr(summary, one.name)) for one in fields(summary)}


def summarize(function: Any) -> GraphSummary:
    """Return what a scheduled tile graph says."""
    device = device_of(function)
    outermost = device.levels[0].name
    operations = [op.operation for op in function.regions[0].blocks[0].operations]
    *body, terminator = operations
    steps = [op for op in body if op.name in _STEPS]
    names = {op: _step_name(op) for op in steps}
    edges = [
        _edge(value, names, (names[op], reader), outermost)
        for op in steps
        for value, reader in _reads(op)
    ]
    edges += [
        _edge(value, names, (f"result {number}", ""), outermost)
        for number, value in enumerate(terminator.operands)
    ]
    summaries = tuple(_step(op, names[op]) for op in steps)
    return GraphSummary(device, summaries, tuple(edges))


def _step_name(op: Any) -> str:
    if op.name == _SUBGRAPH:
        return str(op.attributes["subgraph_name"].value)
    external = _callee(op).attributes.get(EXTERNAL)
    return callee_of(op) if external is None else str(external.value)


def _callee(call: Any) -> Any:
    module = call.parent.operation.parent.operation
    return find_function(module, callee_of(call))


def _kind_of_call(call: Any) -> str:
    callee = _callee(call)
    if loop_of(callee) is not None:
        return "loop"
    match control_of(callee):
        case IfCall():
            return "if"
        case WhileCall():
            return "while"
    return "external"


def _reads(op: Any) -> Iterator[tuple[Any, str]]:
    """Yield the tensors that a step reads, each with the operator that does."""
    if op.name != _SUBGRAPH:
        yield from ((value, "") for value in op.operands)
        return
    for operator in op.regions[0].blocks[0].operations:
        for value in captured_values(operator):
            maker = defining_op(value)
            inside = maker is not None and maker.operation.parent == op
            if isinstance(value.type, ir.RankedTensorType) and not inside:
                yield value, _operator_name(operator)


def _operator_name(op: Any) -> str:
    attributes = op.operation.attributes
    return str(attributes["op_name"].value) if "op_name" in attributes else ""


def _edge(
    value: Any, names: dict[Any, str], reader: tuple[str, str], outermost: str
) -> EdgeSummary:
    """Describe the way of a tensor, through connects and views, to (step, operator)."""
    level, refused, type_ = outermost, "", ir.RankedTensorType(value.type)
    op = defining_op(value)
    while op is not None and op.operation not in names and len(op.operands):
        if op.operation.name == _CONNECT and not refused:
            level, refused = _level_and_refusal(op)
        value = op.operands[0]
        op = defining_op(value)
    producer, maker = _origin(value, names)
    size = type_bytes(type_)
    text = "x".join([*map(str, type_.shape), str(type_.element_type)])
    return EdgeSummary(producer, maker, *reader, text, size, level, refused)


def _level_and_refusal(connect: Any) -> tuple[str, str]:
    attributes = connect.operation.attributes
    refused = attributes["refused"].value if "refused" in attributes else ""
    return str(attributes["level"].value), str(refused)


def _origin(value: Any, names: dict[Any, str]) -> tuple[str, str]:
    """Return the step that makes a value, and the operator of it."""
    if isinstance(value, ir.BlockArgument):
        return f"argument {value.arg_number}", ""
    op = value.owner.operation
    if op not in names:
        return "constant", ""
    if op.name != _SUBGRAPH:
        return names[op], ""
    *_, terminator = op.regions[0].blocks[0].operations
    made = terminator.operands[list(op.results).index(value)]
    return names[op], _operator_name(made.owner)


def _step(op: Any, name: str) -> StepSummary:
    if op.name != _SUBGRAPH:
        return StepSummary(name, _kind_of_call(op))
    known = [key for key in op.attributes if key not in _ELSEWHERE]
    plan = {key: plain(op.attributes[key]) for key in known}
    operators = operators_of(op)
    implementation = op.attributes.get("implementation")
    kind = "generated" if implementation is None else str(implementation.value)
    root = operators[-1]
    grid = 1
    if "tile" in plan:
        pairs = zip(parallel_extents(root_operation(root)), plan["tile"], strict=True)
        grid = math.prod(-(-extent // size) for extent, size in pairs)
    summaries = tuple(map(_operator, operators))
    edges = tuple(_inner_edges(op, name))
    winograd = kind == "generated" and any(map(_is_winograd, operators))
    return StepSummary(name, kind, summaries, edges, plan, grid, winograd)


def _is_winograd(operator: Any) -> bool:
    """Whether a convolution is computed so: its tiles have whole blocks of rows."""
    if not winograd_tile(root_operation(operator)):
        return False
    attributes = operator.operation.attributes
    return "tile" in attributes and plain(attributes["tile"])[1] % ROWS == 0


def _operator(operator: Any) -> OperatorSummary:
    root = root_operation(operator)
    attributes = operator.operation.attributes
    tile = plain(attributes["tile"]) if "tile" in attributes else ()
    nodes = tuple(dict.fromkeys(_node_names(operator.operation.location)))
    extents = tuple(parallel_extents(root))
    return OperatorSummary(_operator_name(operator), root.name, nodes, extents, tile)


def _inner_edges(subgraph: Any, name: str) -> Iterator[EdgeSummary]:
    for op in subgraph.regions[0].blocks[0].operations:
        if op.operation.name != _CONNECT:
            continue
        value = op.operation.results[0]
        type_ = ir.RankedTensorType(value.type)
        maker = defining_op(op.operation.operands[0])
        level, refused = _level_and_refusal(op)
        size = type_bytes(type_)
        text = "x".join([*map(str, type_.shape), str(type_.element_type)])
        made_by = "" if maker is None else _operator_name(maker)
        for reader in _readers(op.operation):
            yield EdgeSummary(name, made_by, name, reader, text, size, level, refused)


def _readers(connect: Any) -> list[str]:
    """Operators beside a connect that read it, each once."""
    block = connect.parent
    found: dict[str, None] = {}
    for use in connect.results[0].uses:
        op = use.owner.operation
        while op.parent != block:
            op = op.parent.operation
        found[_operator_name(op)] = None
    return list(found)


def _node_names(location: Any) -> Iterator[str]:
    """Yield the names in a location, those of fused parts in their order."""
    location = type(location).from_attr(location.attr, location.context)
    name = getattr(location, "name_str", None)
    if name is not None:
        yield str(name)
    for part in getattr(location, "locations", ()):
        yield from _node_names(part)


def plain(attribute: Any) -> Any:
    """Return an attribute as a plain value: numbers, texts, sizes, tables of these."""
    if isinstance(attribute, ir.DictAttr):
        return {entry.name: plain(entry.attr) for entry in attribute}
    if isinstance(attribute, ir.ArrayAttr):
        return [plain(item) for item in attribute]
    if hasattr(attribute, "sizes"):
        return tuple(attribute.sizes)
    return attribute.value if hasattr(attribute, "value") else str(attribute)
