"""Owns the alternatives of a unit: the plans that are worth measuring, best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import device_of, tile_attribute
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.analysis.library_calls import library_call
from magweld.passes.analysis.library_form import LibraryCall
from magweld.passes.analysis.stream_marks import STEP, mark_stream
from magweld.passes.tile.apply_plans import PLAN
from magweld.passes.tile.connect_operators import Connector
from magweld.passes.tile.library_candidates import called_operators
from magweld.passes.tile.merger import Fusion, Merger
from magweld.passes.tile.select_implementation import (
    LibraryUse,
    SelectImplementation,
    states_libraries,
)
from magweld.passes.tile.select_libraries import SelectLibraries
from magweld.passes.tiling.policy import Scheduler
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets.device import Device

# Units with more operators that a library can compute get no choice for each of them.
MOST_CHOICES = 3
# A tile is not worth measuring if the model thinks it slower than the best by this.
WORST_RATIO = 2.0


@dataclass(frozen=True)
class Alternative:
    """One plan of a unit.

    Attributes:
        label: What a library computes, and the tile of the group that takes longest.
        text: The unit with its decisions, as a module with one plan.
        seconds: Predicted time; what a library computes counts as if generated.
    """

    label: str
    text: str
    seconds: float


def alternatives(
    module: Any, library: LibraryUse = "auto", fusion: Fusion = "all", count: int = 8
) -> list[Alternative]:
    """Return plans of a unit; the first one is what the passes do without a plan.

    The next ones differ in what a library computes, each with its predicted tiles; the
    rest in the tile of the group that takes longest, in the order of predicted times.

    Args:
        module: The unit, nothing decided; it is left as it was.
        library: Whether library calls may compute operators.
        fusion: Which operators may share a kernel.
        count: Most plans.
    """
    maker = _Maker(module, fusion)
    choices = list(dict.fromkeys(_library_choices(module, library, fusion)))
    found: dict[str, Alternative] = {}
    for rank in range(count):
        for choice in choices:
            made = maker.make(choice, rank)
            if made is not None:
                found.setdefault(made.text, made)
        if len(found) >= count:
            break
    return list(found.values())[:count]


def _library_choices(
    module: Any, library: LibraryUse, fusion: Fusion
) -> Iterator[frozenset[int]]:
    """Sets of operators for a library to compute, the predicted one first."""
    function = next(iter(module.body.operations))
    device, body = device_of(function), read_body(function)
    if states_libraries(device):
        yield from _device_choices(body, device, library, fusion)
        return
    operators = body.operators
    for use in _uses(library):
        choice = SelectImplementation(use)
        yield frozenset(
            i for i, op in enumerate(operators) if choice.uses_library(op, device)
        )
    able = [
        i for i, op in enumerate(operators) if isinstance(library_call(op), LibraryCall)
    ]
    if library == "auto" and len(able) <= MOST_CHOICES:
        yield from (frozenset({i}) for i in able)


def _uses(library: LibraryUse) -> tuple[LibraryUse, ...]:
    return ("auto", "never", "always") if library == "auto" else (library,)


def _device_choices(
    body: GraphBody, device: Device, library: LibraryUse, fusion: Fusion
) -> Iterator[frozenset[int]]:
    """The same where whole groups are priced, and a call may be several operators."""
    for use in _uses(library):
        calls = SelectLibraries(use, fusion).calls(body, device)
        yield frozenset(member for call in calls for member in call.members)
    able = list(called_operators(body, device))
    if library == "auto" and len(able) <= MOST_CHOICES:
        yield from (frozenset(call.members) for call in able)


class _Maker:
    def __init__(self, module: Any, fusion: Fusion) -> None:
        self._module = module
        self._fusion = fusion
        self._scheduler = Scheduler(device_of(next(iter(module.body.operations))))
        self._ranked: dict[Any, list[Plan]] = {}

    def make(self, library: frozenset[int], rank: int) -> Alternative | None:
        """Return the plan with the tile of a rank, if there is one."""
        module = self._module.operation.clone()
        function = next(iter(module.regions[0].blocks[0]))
        body = read_body(function)
        _write_implementations(body, library)
        merger = Merger(body, self._scheduler, self._fusion, library)
        connector = Connector(merger)
        connector.annotate()
        groups = list(connector.groups.values())
        plans = {
            members[-1]: self._rank(body, members)
            for members in groups
            if members[-1] not in library
        }
        slowest = max(
            (root for root, ranked in plans.items() if ranked),
            key=lambda root: plans[root][0].cost.seconds,
            default=None,
        )
        if rank > 0 and (slowest is None or rank >= len(plans[slowest])):
            return None
        chosen = {
            root: ranked[rank if root == slowest else 0]
            for root, ranked in plans.items()
            if ranked
        }
        for members in (m for m in groups if m[-1] in chosen):
            _write_tile(body, members, chosen[members[-1]])
        label = _label(body, library, None if slowest is None else chosen[slowest])
        function.attributes[PLAN] = ir.StringAttr.get(label)
        seconds = sum(plan.cost.seconds for plan in chosen.values())
        seconds += sum(
            self._seconds(body, members) for members in groups if members[-1] in library
        )
        return Alternative(label, module.get_asm(enable_debug_info=False), seconds)

    def _rank(self, body: GraphBody, members: list[int]) -> list[Plan]:
        group = body.group(members)
        if group not in self._ranked:
            ranked = self._scheduler.ranking(group, WORST_RATIO - 1)
            limit = self._scheduler.most_traffic(group)
            self._ranked[group] = [
                plan
                for plan in ranked
                if len(members) == 1 or plan.cost.traffic <= limit
            ]
        return self._ranked[group]

    def _seconds(self, body: GraphBody, members: list[int]) -> float:
        plan = self._scheduler.plan(body.group(members))
        return plan.cost.seconds if isinstance(plan, Plan) else 0.0


def _write_implementations(body: GraphBody, library: frozenset[int]) -> None:
    for position, operator in enumerate(body.operators):
        name = "library" if position in library else "generated"
        operator.attributes["implementation"] = ir.StringAttr.get(name)


def _write_tile(body: GraphBody, members: list[int], plan: Plan) -> None:
    attributes = body.operators[members[-1]].attributes
    attributes["tile"] = tile_attribute(plan.tile)
    blocks = plan.tiles.blocks
    stream = None if blocks is None else blocks.stream
    mark_stream(body, members, body.group(members), stream)
    if blocks is not None:
        attributes[STEP] = i64(blocks.size)


def _label(body: GraphBody, library: frozenset[int], plan: Plan | None) -> str:
    names = [f"{body.models[i].name} {i}" for i in sorted(library)]
    parts = [f"library: {', '.join(names)}" if names else "generated"]
    if plan is not None:
        parts.append(f"tile {'x'.join(map(str, plan.tile))}")
        blocks = plan.tiles.blocks
        parts += [] if blocks is None else [f"stream {blocks.size}"]
    return "; ".join(parts)
