"""Owns plan-execution: every scheduled subgraph becomes the plan of its tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import device_of, is_tile_graph, subgraphs_of
from magweld.passes.infrastructure.base import FunctionPass
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
    barriers stand between what some write and others read. Subgraphs of libraries stay
    as they are.
    """

    name: ClassVar[str] = "plan-execution"

    def run_on_function(self, function: Any) -> None:
        """Plan the subgraphs of `function`."""
        if not is_tile_graph(function):
            return
        device = device_of(function)
        for subgraph in (op.operation for op in subgraphs_of(function)):
            if is_planned(subgraph):
                with ir.InsertionPoint(subgraph), subgraph.location:
                    plan = build_plan(subgraph, device)
                for old, new in zip(subgraph.results, plan.results, strict=True):
                    old.replace_all_uses_with(new)
                subgraph.erase()


def is_planned(subgraph: Any) -> bool:
    """Return whether code is generated for a subgraph, and has something to do."""
    attribute = subgraph.attributes.get("implementation")
    generated = attribute is None or ir.StringAttr(attribute).value == "generated"
    return generated and not is_empty(subgraph)


def is_empty(subgraph: Any) -> bool:
    """Return whether no result has any element."""
    types = (ir.RankedTensorType(value.type) for value in subgraph.results)
    return all(0 in type_.shape for type_ in types)
