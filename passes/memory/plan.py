"""Owns the plan of a graph within a memory budget: what is stored, what is tiled.

Every tensor is either stored whole or made tile by tile wherever it is read, as often
as it is read. Storing costs memory, not storing costs arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from magweld.passes.memory.choices import Choice, choices_of
from magweld.passes.memory.cones import Cone, Use, find_cone
from magweld.passes.memory.demands import Nest
from magweld.passes.memory.graph import Graph, Node
from magweld.passes.tiling.propagation import Refusal
from magweld.targets.device import Device

# Shares of the budget; tensors up to one of them are stored to begin with.
STORED_SHARES = (1, 2, 4, 8, 16, 32, 64)
# Shares of the budget for what calls bring themselves; the arena gets the rest.
TRANSIENT_SHARES = (0.5, 0.25, 0.75, 0.35, 0.65, 0.1, 0.9)
# Plans of these beginnings that are made better.
REFINED = 4


@dataclass(frozen=True)
class TiledCone:
    """A stored tensor that is made tile by tile."""

    cone: Cone
    choice: Choice


@dataclass(frozen=True)
class MemoryPlan:
    """How a graph runs within a budget.

    Attributes:
        tiled: What is made tile by tile, in order; everything else as ever.
        use: Bytes that are taken together, at most.
        seconds: Predicted time.
    """

    tiled: tuple[TiledCone, ...]
    use: Use
    seconds: float


def plan_memory(graph: Graph, budget: int, device: Device) -> MemoryPlan | Refusal:
    """Return the fastest plan found that takes at most `budget` bytes."""
    return _Planner(graph, budget, device).best()


class _Planner:
    def __init__(self, graph: Graph, budget: int, device: Device) -> None:
        self._graph = graph
        self._budget = budget
        self._room = Use(budget, 0)
        self._device = device
        self._choices: dict[tuple[int, tuple[int, ...]], tuple[Choice, ...]] = {}
        self._optional = [
            tensor
            for tensor in graph.producer
            if graph.storage[tensor] == tensor
            and tensor not in graph.fixed
            and not self._melts(tensor)
        ]

    def best(self) -> MemoryPlan | Refusal:
        """Return the best plan; the memory is shared out in several ways."""
        refusals: list[Refusal] = []
        plans: list[tuple[MemoryPlan, frozenset[int], Use]] = []
        for share in TRANSIENT_SHARES:
            transient = int(self._budget * share)
            self._room = Use(self._budget - transient, transient)
            for stored in self._beginnings():
                plan = self._plan(stored)
                if isinstance(plan, MemoryPlan):
                    plans.append((plan, stored, self._room))
                else:
                    refusals.append(plan)
        if not plans:
            return refusals[-1]
        plans.sort(key=lambda found: found[0].seconds)
        return min(
            (self._refine(*found) for found in plans[:REFINED]),
            key=lambda plan: plan.seconds,
        )

    def _beginnings(self) -> set[frozenset[int]]:
        """All tensors to store that are not too large."""
        limits = [None, *(self._budget // share for share in STORED_SHARES)]
        return {
            frozenset(
                tensor
                for tensor in self._optional
                if limit is None or self._graph.tensors[tensor].nbytes <= limit
            )
            for limit in limits
        }

    def _refine(
        self, plan: MemoryPlan, stored: frozenset[int], room: Use
    ) -> MemoryPlan:
        """Store more tensors, one at a time, as long as that makes the plan faster."""
        self._room = room
        improved = bool(plan.tiled)
        while improved:
            improved = False
            for tensor in self._worth_storing(stored):
                better = self._plan(stored | {tensor})
                if isinstance(better, MemoryPlan) and better.seconds < plan.seconds:
                    plan, stored, improved = better, stored | {tensor}, True
        return plan

    def _worth_storing(self, stored: frozenset[int]) -> Iterator[int]:
        for tensor in self._optional:
            fits = self._graph.tensors[tensor].nbytes <= self._budget
            if fits and tensor not in stored:
                yield tensor

    def _melts(self, tensor: int) -> bool:
        """Whether one operation reads a tensor, an element for each that it makes.

        What that makes can as well be stored instead.
        """
        readers = self._graph.readers[tensor]
        rules = [self._graph.nodes[number].rule for number in readers]
        return len(rules) == 1 and all(
            isinstance(rule, Nest) and len(rule.extents) == len(rule.result)
            for rule in rules
        )

    def _plan(self, stored: frozenset[int]) -> MemoryPlan | Refusal:
        return _Schedule(self, stored | self._graph.fixed).run()

    def choices(self, cone: Cone) -> tuple[Choice, ...]:
        """Return the tiles of a cone, found once."""
        key = (cone.root, cone.leaves)
        if key not in self._choices:
            self._choices[key] = choices_of(cone, self._device, self._budget)
        return self._choices[key]

    @property
    def graph(self) -> Graph:
        """The graph that is planned."""
        return self._graph

    @property
    def room(self) -> Use:
        """Bytes that a plan may take."""
        return self._room


class _Schedule:
    """Runs through one choice of stored tensors in order, counting bytes and time."""

    def __init__(self, planner: _Planner, stored: frozenset[int]) -> None:
        self._planner = planner
        self._graph = planner.graph
        self._cones = self._in_order(stored)
        self._last: dict[int, int] = {}
        for step, cone in enumerate(self._cones):
            for leaf in cone.leaves:
                self._last[self._graph.storage[leaf]] = step

    def _in_order(self, stored: frozenset[int]) -> list[Cone]:
        cones: dict[int, Cone] = {}
        for tensor in sorted(stored, key=self._graph.producer.__getitem__):
            number = self._graph.producer[tensor]
            # Operations of several results are no cones of several members.
            cones.setdefault(number, find_cone(self._graph, tensor, stored))
        return list(cones.values())

    def run(self) -> MemoryPlan | Refusal:
        arena: dict[int, int] = {}
        brought: dict[int, int] = {}
        tiled: list[TiledCone] = []
        most, seconds = Use(0, 0), 0.0
        for step, cone in enumerate(self._cones):
            chosen = self._choose(cone, sum(arena.values()), sum(brought.values()))
            if isinstance(chosen, Refusal):
                return chosen
            use, choice = chosen
            most = Use(max(most.arena, use.arena), max(most.transient, use.transient))
            if choice is not None:
                seconds += choice.seconds
            is_tiled = choice is not None and choice.count > 1
            if choice is not None and is_tiled:
                tiled.append(TiledCone(cone, choice))
            node = self._graph.nodes[cone.members[-1]]
            kind = brought if self._brings(node) and not is_tiled else arena
            kind.update({tensor: self._counted(tensor) for tensor in node.results})
            for live in (arena, brought):
                for tensor in [t for t in live if self._last.get(t, -1) <= step]:
                    del live[tensor]
        return MemoryPlan(tuple(tiled), most, seconds)

    def _brings(self, node: Node) -> bool:
        """Whether a call brings its results: a library's, or one without rule."""
        return node.brings_result or (node.rule is None and not node.flops)

    def _counted(self, tensor: int) -> int:
        """Results belong to the caller."""
        returned = tensor in self._graph.returned
        return 0 if returned else self._graph.tensors[tensor].nbytes

    def _choose(
        self, cone: Cone, arena: int, brought: int
    ) -> tuple[Use, Choice | None] | Refusal:
        """Return what is taken while a cone runs, and its tile; the first that fits.

        Args:
            cone: The cone.
            arena: Bytes of stored tensors in the arena, without the result.
            brought: Bytes of stored tensors that calls brought.
        """
        room = self._planner.room
        node = self._graph.nodes[cone.members[-1]]
        result = sum(map(self._counted, node.results))
        least: Use | None = None
        for choice, own in self._ways(cone):
            is_tiled = choice is not None and choice.count > 1
            brings = self._brings(node) and not is_tiled
            use = Use(
                arena + own.arena + (0 if brings else result),
                brought + own.transient + (result if brings else 0),
            )
            if use.arena <= room.arena and use.transient <= room.transient:
                return use, choice
            if least is None or use.total < least.total:
                least = use
        assert least is not None, "there is one way at least"
        shape = list(self._graph.tensors[cone.root].shape)
        return Refusal(
            "memory-budget",
            f"to make a tensor of {shape}, {least.arena} bytes of arena are needed at "
            f"least and {least.transient} that calls bring, where there are "
            f"{room.arena} and {room.transient}",
        )

    def _ways(self, cone: Cone) -> Iterator[tuple[Choice | None, Use]]:
        """Ways to run a cone, with what each takes beside stored tensors."""
        choices = self._planner.choices(cone)
        for choice in choices:
            yield choice, choice.use
        if not choices:
            yield None, Use(0, 0)
