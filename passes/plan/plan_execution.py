"""Owns plan-execution: every scheduled subgraph becomes the plan of its tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    device_of,
    is_tile_graph,
    operators_of,
    subgraphs_of,
)
from magweld.passes.analysis.structure import Structure, structure_of, values_of
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import ValueMap, clone_mapped, nested_deeply
from magweld.passes.plan.plan_body import build_plan


@dataclass(frozen=True)
class PlanExecution(FunctionPass):
    """Write what is done for each tile of a subgraph, and where tiles lie.

    A generated subgraph becomes `tile_graph.for_tiles`: a loop over the tiles of its
    root in which every operator loads regions of tensors, computes on tiles and stores;
    a stream is a loop over blocks in it. What readers can make element by element is no
    tile: `compute` is one loop nest, whose operation does what several operators do. A
    nest may write over a tile that it is the last to read. Tiles of every shape, where
    sizes do not divide extents, have a block of their own. Tiles get places in the
    level of the subgraph by best fit over their lifetimes, which is the footprint that
    the schedule promised. Where the units that work on a tile share that memory,
    barriers stand between what some write and others read, and what element-wise nests
    read across the rows that they write is copied there first, row by row. Subgraphs of
    libraries stay as they are.
    """

    name: ClassVar[str] = "plan-execution"

    def run_on_function(self, function: Any) -> None:
        """Plan the subgraphs of `function`."""
        if not is_tile_graph(function):
            return
        device = device_of(function)
        made: dict[Structure, _Planned] = {}
        for subgraph in (op.operation for op in subgraphs_of(function)):
            if is_planned(subgraph):
                structure = structure_of(subgraph)
                with ir.InsertionPoint(subgraph), subgraph.location:
                    if structure in made:
                        plan = made[structure].again(subgraph)
                    else:
                        plan = build_plan(subgraph, device).operation
                        made[structure] = _Planned.of(subgraph, plan)
                for old, new in zip(subgraph.results, plan.results, strict=True):
                    old.replace_all_uses_with(new)
                subgraph.erase()


@dataclass(frozen=True)
class _Planned:
    """The plan of a subgraph, which those of equal ones are made of.

    Attributes:
        plan: The operation.
        values: What the subgraph read, from outside.
        names: Of its operators, in order.
    """

    plan: Any
    values: Sequence[Any]
    names: Sequence[Any]

    @classmethod
    def of(cls, subgraph: Any, plan: Any) -> _Planned:
        """Keep what is needed of a subgraph that will be erased."""
        return cls(plan, values_of(subgraph), _names(subgraph))

    def again(self, subgraph: Any) -> Any:
        """Return the plan of an equal subgraph, at the insertion point."""
        values, names = ValueMap(), _names(subgraph)
        for old, new in zip(self.values, values_of(subgraph), strict=True):
            values[old] = new
        plan = clone_mapped(self.plan, values)
        plan.attributes["subgraph_name"] = subgraph.attributes["subgraph_name"]
        plan.attributes["operators"] = ir.ArrayAttr.get(names)
        name_of = dict(zip(self.names, names, strict=True))
        for op in nested_deeply(plan):
            if "op_name" in op.attributes:
                op.attributes["op_name"] = name_of[op.attributes["op_name"]]
        return plan


def _names(subgraph: Any) -> list[Any]:
    return [op.attributes["op_name"] for op in operators_of(subgraph)]


def is_planned(subgraph: Any) -> bool:
    """Return whether code is generated for a subgraph, and has something to do."""
    attribute = subgraph.attributes.get("implementation")
    generated = attribute is None or ir.StringAttr(attribute).value == "generated"
    return generated and not is_empty(subgraph)


def is_empty(subgraph: Any) -> bool:
    """Return whether no result has any element."""
    types = (ir.RankedTensorType(value.type) for value in subgraph.results)
    return all(0 in type_.shape for type_ in types)
