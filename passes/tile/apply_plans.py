"""Owns apply-plans: what was decided for a part of a graph decides equal parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import device_of, is_tile_graph
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import functions_of, located_error
from magweld.passes.tile.merger import Fusion
from magweld.passes.tile.units import (
    EDGE_DECISIONS,
    OPERATOR_DECISIONS,
    UNIT,
    inner_edges,
    structure,
    units_of,
)

PLAN = "tile_graph.plan"
_BEYOND = "plan: another plan begins here"


@dataclass(frozen=True)
class ApplyPlans(Pass):
    """Write the decisions of the module's plans into the graphs.

    A plan is a function with the attribute `tile_graph.plan`: a unit of a graph, with
    `implementation` and `tile` at its operators and levels at its edges. Every unit of
    another graph with the same structure, which is all but these attributes, names and
    places, gets them, and its edges to other units stay at the outermost level. The
    steps that follow keep what is decided. Plans are erased; one that fits no unit has
    no effect.

    Options:
        fusion: As for connect-operators: it says what the units are.
    """

    name: ClassVar[str] = "apply-plans"
    fusion: Fusion = "all"

    def run(self, module: Any) -> None:
        """Apply the plans of the module and erase them."""
        functions = list(functions_of(module))
        plans = [f for f in functions if PLAN in f.attributes]
        if not plans:
            return
        by_structure = {structure_of(plan): plan for plan in plans}
        for function in functions:
            if is_tile_graph(function) and function not in plans:
                self._apply(function, by_structure)
        for plan in plans:
            plan.operation.erase()

    def _apply(self, function: Any, plans: dict[str, Any]) -> None:
        body = read_body(function)
        for unit in units_of(function, self.fusion):
            plan = plans.get(unit.structure)
            if plan is not None:
                _copy_decisions(read_body(plan), body, unit.members)
        for operator in body.operators:
            if UNIT in operator.attributes:
                del operator.attributes[UNIT]


def structure_of(plan: Any) -> str:
    """Return the structure of a function that is one unit.

    Raises:
        PassError: It is no tile graph.
    """
    if not is_tile_graph(plan):
        raise located_error(plan, "is a plan, expected it to have a device")
    body = read_body(plan)
    return structure(body, range(len(body.operators)), device_of(plan))


def _copy_decisions(plan: GraphBody, body: GraphBody, members: Sequence[int]) -> None:
    for source, member in zip(plan.operators, members, strict=True):
        _copy(source, body.operators[member], OPERATOR_DECISIONS)
    decided = inner_edges(plan, range(len(plan.operators)))
    edges = inner_edges(body, members)
    for source, connect in zip(decided, edges, strict=True):
        _copy(source, connect, EDGE_DECISIONS)
    for edge in body.edges:
        if (edge.producer in members) != (edge.consumer in members):
            edge.connect.attributes["refused"] = ir.StringAttr.get(_BEYOND)


def _copy(source: Any, target: Any, names: Sequence[str]) -> None:
    for name in names:
        if name in source.attributes:
            target.attributes[name] = source.attributes[name]
