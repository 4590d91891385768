"""Owns the units of tuning: parts of a graph whose plans do not touch each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import func, ir
from magweld.dialects.device_attributes import device_attribute
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import (
    DEVICE,
    build_connect,
    captured_values,
    device_of,
    root_operation,
)
from magweld.passes.analysis.graph_body import GraphBody, read_body, source_value
from magweld.passes.analysis.operator_model import is_rematerialised
from magweld.passes.analysis.stream_marks import MARK, STEP
from magweld.passes.ir.cloning import ValueMap, clone_mapped, defining_op
from magweld.passes.tile.components import components
from magweld.passes.tile.connect_operators import Connector
from magweld.passes.tile.library_candidates import called_operators
from magweld.passes.tile.merger import Fusion, Merger
from magweld.passes.tile.select_implementation import (
    SelectImplementation,
    states_libraries,
)
from magweld.passes.tiling.policy import Scheduler
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets.device import Device

# Units with more operators are cut: each choice more doubles what is to be measured.
MOST_OPERATORS = 24
# What decides on an operator and on an edge; the rest of a graph is its structure.
OPERATOR_DECISIONS = ("implementation", "tile", STEP)
EDGE_DECISIONS = ("level", "refused", MARK)
# Number of the unit of an operator, where units were found before.
UNIT = "unit"


@dataclass(frozen=True)
class Unit:
    """Operators whose plan is chosen together.

    Attributes:
        members: Their positions in the graph, rising.
        structure: The unit as a module of its own, as text without names, places and
            decisions: equal for equal units.
        seconds: Predicted time with the groups that the model alone makes; 0 for units
            that were found before.
    """

    members: tuple[int, ...]
    structure: str
    seconds: float


def units_of(function: Any, fusion: Fusion = "all") -> list[Unit]:
    """Return the units of a graph that nothing has been decided for.

    Operators are in one unit if the model connects them when a library computes what
    is bound by arithmetic, or when it computes nothing, or if one call of a library may
    compute them.
    """
    body, device = read_body(function), device_of(function)
    known = _known_units(body)
    if known:
        return [Unit(m, structure(body, m, device), 0.0) for m in known]
    scheduler = Scheduler(device)
    choice = SelectImplementation()
    library = [choice.uses_library(op, device) for op in body.operators]
    usual = _groups(
        body, scheduler, fusion, {i for i, use in enumerate(library) if use}
    )
    fused = _groups(body, scheduler, fusion, ())
    seconds = [_seconds(body, scheduler, members) for members in usual]
    called: list[list[int]] = []
    if states_libraries(device):
        called = [list(one.members) for one in called_operators(body, device)]
    return [
        Unit(
            tuple(members),
            structure(body, members, device),
            sum(
                time
                for group, time in zip(usual, seconds, strict=True)
                if group[-1] in members
            ),
        )
        for members in _components(len(body.operators), [*usual, *called], fused)
    ]


def mark_units(function: Any, units: Sequence[Unit]) -> None:
    """Write the unit of each operator, so that a later pass need not find them."""
    operators = read_body(function).operators
    for position, unit in enumerate(units):
        for member in unit.members:
            operators[member].attributes[UNIT] = i64(position)


def _known_units(body: GraphBody) -> list[tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for position, operator in enumerate(body.operators):
        if UNIT not in operator.attributes:
            return []
        number = ir.IntegerAttr(operator.attributes[UNIT]).value
        found.setdefault(number, []).append(position)
    return [tuple(members) for members in found.values()]


def _groups(
    body: GraphBody, scheduler: Scheduler, fusion: Fusion, library: Collection[int]
) -> list[list[int]]:
    connector = Connector(Merger(body, scheduler, fusion, library))
    connector.connect()
    return list(connector.groups.values())


def _seconds(body: GraphBody, scheduler: Scheduler, members: list[int]) -> float:
    plan = scheduler.plan(body.group(members))
    return plan.cost.seconds if isinstance(plan, Plan) else 0.0


def _components(
    count: int, usual: list[list[int]], fused: list[list[int]]
) -> list[list[int]]:
    """Join groups that share operators, unless too much would become one."""
    groups = (*usual, *fused)
    pairs = ((first, other) for first, *others in groups for other in others)
    whole = components(count, pairs)
    parts: list[list[int]] = []
    for members in whole:
        if len(members) <= MOST_OPERATORS:
            parts.append(members)
        else:
            parts += [group for group in fused if group[-1] in members]
    return sorted(parts)


def structure(body: GraphBody, members: Sequence[int], device: Device) -> str:
    """Return the canonical text of some operators as a module of its own."""
    with ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            _build(body, members, device)
    text: str = module.operation.get_asm(enable_debug_info=False)
    return text


def inner_edges(body: GraphBody, members: Sequence[int]) -> list[Any]:
    """Return the connects between members, in the order of a unit's structure."""
    found: dict[Any, None] = {}
    for member in members:
        for value in _inner_inputs(body, members, member):
            found[_maker(value)] = None
    return list(found)


def _inner_inputs(
    body: GraphBody, members: Collection[int], member: int
) -> Iterator[Any]:
    made = {result for i in members for result in body.operators[i].results}
    for value in body.inputs[member]:
        if value != source_value(value) and source_value(value) in made:
            yield value


def _maker(value: Any) -> Any | None:
    producer = defining_op(value)
    return None if producer is None else producer.operation


def _build(body: GraphBody, members: Sequence[int], device: Device) -> None:
    inner = set(inner_edges(body, members))
    sources: dict[Any, int] = {}
    for member in members:
        for value in body.inputs[member]:
            if _maker(value) not in inner:
                sources.setdefault(source_value(value), len(sources))
    results = [
        result
        for member in members
        for result in body.operators[member].results
        if any(use.owner.operation not in inner for use in result.uses)
    ]
    signature = ([v.type for v in sources], [v.type for v in results])
    function = func.FuncOp("main", signature)
    function.attributes[DEVICE] = device_attribute(device)
    with ir.InsertionPoint(function.add_entry_block()):
        values = ValueMap()
        arguments = dict(zip(sources, function.arguments, strict=True))
        for member in members:
            _clone_operator(body, member, inner, values, arguments, device)
        func.ReturnOp([values[result] for result in results])


def _clone_operator(
    body: GraphBody,
    member: int,
    inner: Collection[Any],
    values: ValueMap,
    arguments: dict[Any, Any],
    device: Device,
) -> None:
    for value in body.inputs[member]:
        if _maker(value) in inner:
            source = values[source_value(value)]
            values[value] = build_connect(source, device.levels[0].name).output
        else:
            values[value] = arguments[source_value(value)]
    operator = body.operators[member]
    _clone_helpers(captured_values(operator), values)
    clone = clone_mapped(operator, values)
    kind = root_operation(operator).name.rpartition(".")[2]
    clone.attributes["op_name"] = ir.StringAttr.get(kind)
    for name in (*OPERATOR_DECISIONS, UNIT):
        if name in clone.attributes:
            del clone.attributes[name]


def _clone_helpers(captured: list[Any], values: ValueMap) -> None:
    """Clone constants and fills that stand outside of an operator, as it reads them."""
    for value in captured:
        if value not in values and is_rematerialised(value):
            helper = value.owner.operation
            _clone_helpers(list(helper.operands), values)
            clone_mapped(helper, values)
