"""Owns fit-memory: what does not fit a budget is made tile by tile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.diagnostics import PassError
from magweld.dialects.device_attributes import device_attribute
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import (
    DEVICE,
    build_connect,
    build_subgraph,
    device_of,
    is_tile_graph,
    tile_attribute,
    yield_values,
)
from magweld.passes.analysis.operator_model import inputs_of
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import ValueMap, clone_mapped
from magweld.passes.memory.boxes import whole
from magweld.passes.memory.plan import TiledCone, plan_memory
from magweld.passes.memory.reading import ReadGraph, read_graph
from magweld.passes.tiling.propagation import Refusal
from magweld.targets.device import Device, Level, LevelKind

HOST = "host"
_REMOVABLE = frozenset(
    {
        "tile_graph.operator",
        "tile_graph.connect",
        "tensor.expand_shape",
        "tensor.collapse_shape",
    }
)


class MemoryBudgetError(PassError):
    """A graph fits a memory budget in no way that was found."""


@dataclass(frozen=True)
class FitMemory(FunctionPass):
    """Make tensors tile by tile where they do not fit a memory budget whole.

    Welder's scheduling one level up. Every tensor is stored whole or made, tile by
    tile, wherever it is read; the fastest such plan within the budget is taken. What
    makes one stored tensor in more than one tile becomes an outer subgraph: its tensors
    live at the level `dram` of a device whose outermost level is now `host`, in tiles
    that `tile` states. Operators that several of them need stand in each. Overlapping
    borders are computed again.

    A function that fits as it is stays as it is. One that fits in no way is an error
    that says what is needed.

    Options:
        budget: Bytes for all tensors but arguments and results; 0 is no limit.
    """

    name: ClassVar[str] = "fit-memory"
    budget: int = 0

    def run_on_function(self, function: Any) -> None:
        """Form the outer subgraphs of a graph."""
        if not is_tile_graph(function) or not self.budget:
            return
        device = device_of(function)
        read = read_graph(function)
        plan = plan_memory(read.graph, self.budget, device)
        if isinstance(plan, Refusal):
            raise MemoryBudgetError(f"{plan.rule}: {plan.detail}")
        if plan.tiled:
            _Former(function, read, device, self.budget).form(plan.tiled)


def extended_device(device: Device, budget: int) -> Device:
    """Return a device with host memory around its outermost level, of which a budget.

    For the CPU both are the same memory: the level inside is what tiles may take.
    """
    inner, *others = device.levels
    host = Level(
        name=HOST,
        capacity=0,
        bandwidth=inner.bandwidth,
        transaction=inner.transaction,
        units=1,
        kind=LevelKind.EXPLICIT,
    )
    return replace(device, levels=(host, replace(inner, capacity=budget), *others))


class _Former:
    """Forms the outer subgraphs of one function."""

    def __init__(
        self, function: Any, read: ReadGraph, device: Device, budget: int
    ) -> None:
        self._function = function
        self._read = read
        self._graph = read.graph
        self._level = device.levels[0].name
        self._device = extended_device(device, budget)
        self._values = list(read.values)

    def form(self, tiled: tuple[TiledCone, ...]) -> None:
        """Replace each tiled tensor by a subgraph; drop what nobody reads then."""
        self._function.attributes[DEVICE] = device_attribute(self._device)
        block = self._function.regions[0].blocks[0]
        for op in block.operations:
            if op.operation.name == "tile_graph.connect":
                op.operation.attributes["level"] = ir.StringAttr.get(HOST)
        for number, one in enumerate(tiled):
            self._replace(one, f"memory_{number}")
        for op in reversed([op.operation for op in block.operations]):
            used = any(list(result.uses) for result in op.results)
            if op.name in _REMOVABLE and not used:
                op.erase()

    def _replace(self, tiled: TiledCone, name: str) -> None:
        root = tiled.cone.root
        old = self._values[root]
        anchor = old.owner.operation
        with ir.InsertionPoint(anchor), anchor.location:
            outside = {leaf: self._edge(leaf) for leaf in tiled.cone.leaves}
            subgraph = build_subgraph(name, [old.type], level=self._level)
            with ir.InsertionPoint(subgraph.operation.regions[0].blocks[0]):
                yield_values([self._fill(tiled, outside)])
        _annotate(subgraph.operation, tiled)
        new = subgraph.operation.results[0]
        old.replace_all_uses_with(new)
        self._values[root] = new

    def _edge(self, leaf: int) -> Any:
        """What a subgraph reads of a tensor: through a connect if it was made."""
        value = self._values[leaf]
        return value if self._graph.tensors[leaf].free else build_connect(value, HOST)

    def _fill(self, tiled: TiledCone, outside: dict[int, Any]) -> Any:
        """Clone the operations of a cone; return the value of its root."""
        inside: dict[int, Any] = {}
        for number in tiled.cone.members:
            op, node = self._read.operations[number], self._graph.nodes[number]
            values = ValueMap()
            inputs = list(op.operands) if node.is_view else inputs_of(op)
            for value, tensor in zip(inputs, node.operands, strict=True):
                if tensor in outside:
                    values[value] = _value(outside[tensor])
                elif node.is_view:
                    values[value] = inside[tensor]
                else:
                    edge = build_connect(inside[tensor], self._level)
                    values[value] = edge.output
            clone = clone_mapped(op, values)
            inside[node.results[0]] = clone.results[0]
        return inside[tiled.cone.root]


def _value(made: Any) -> Any:
    return made if isinstance(made, ir.Value) else made.output


def _annotate(subgraph: Any, tiled: TiledCone) -> None:
    cone, choice = tiled.cone, tiled.choice
    untiled = cone.trace(whole(cone.graph.tensors[cone.root].shape))
    assert untiled is not None, "only cones with rules are tiled"
    attributes = subgraph.attributes
    attributes["tile"] = tile_attribute(choice.tile)
    attributes["ragged"] = ir.UnitAttr.get()
    attributes["footprint"] = i64(choice.use.total)
    if choice.moved <= untiled.traffic:
        # One operation alone reads more than it would whole.
        attributes["traffic_before"] = i64(untiled.traffic)
        attributes["traffic_after"] = i64(choice.moved)
    attributes["predicted_seconds"] = ir.FloatAttr.get_f64(choice.seconds)
    recompute = choice.flops / max(1, untiled.flops)
    attributes["recompute"] = ir.FloatAttr.get_f64(recompute)
