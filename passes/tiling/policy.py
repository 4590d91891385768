"""Owns the choice of a tile for a group: candidates, validity and ranking.

Welder's SubGraphTiling for one level (section 4.3). Two of its rules are relaxed:
redundant arithmetic is a cost with a bound instead of forbidden, and a plan is ranked
by predicted seconds instead of traffic times waves.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.loads_in_flight import is_streamed
from magweld.passes.tiling.matrix_units import STEP as MATRIX_STEP
from magweld.passes.tiling.matrix_units import has_rows_of_columns
from magweld.passes.tiling.needs import Needs
from magweld.passes.tiling.placement import STAGED_KINDS
from magweld.passes.tiling.preference import preference
from magweld.passes.tiling.propagation import Propagation, Refusal, Tiles
from magweld.passes.tiling.refinement import refined
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.passes.tiling.register_streams import stream_tiles
from magweld.passes.tiling.stream import Blocks
from magweld.passes.tiling.stream_choices import candidate_blocks, with_reason
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.tile_sizes import candidate_tiles, divisors, root_sizes
from magweld.passes.tiling.trials import Trials, may_be_ragged
from magweld.targets.device import Device, Level

# Plans whose predicted times differ by less than this are equally good: whole
# rows keep runs of memory long for the prefetchers, and a small footprint leaves room
# for what the model does not see.
MODEL_ACCURACY = 0.03
# Reduction step of operands staged in explicit memory: 32 elements of four bytes are
# one 128-byte read transaction.
STAGED_STEP = 32

Tile = tuple[int, ...]
Choice = tuple[Tile, Blocks | None]
"""A tile, and the blocks of what is streamed."""


def staged_step(group: Group) -> int:
    """Return how much of their innermost reduction contractions are staged at a time.

    The longest one of them; 1 if there are none. That of a product of halves is whole
    steps of matrix instructions, where these divide its reduction.
    """
    steps = [
        _staged_step(node)
        for node in group.nodes
        if node.kind in STAGED_KINDS and node.reduction
    ]
    return max(steps, default=1)


def _staged_step(node: OperatorModel) -> int:
    fitting = [
        d for d in divisors(node.extents[node.reduction[-1]]) if d <= STAGED_STEP
    ]
    whole = [d for d in fitting if node.factors and d % MATRIX_STEP == 0]
    return max(whole or fitting)


def tile_levels(device: Device) -> tuple[Level, ...]:
    """Return the levels that can hold reuse tiles.

    These are the ones that each processing unit has for itself, registers excepted.
    """
    return tuple(lvl for lvl in device.levels[1:-1] if lvl.units == device.units)


Likely = dict[tuple[OperatorKind, Tile], Tile]
"""The fastest candidate of the last group with an ending, see `_ending`."""


class Scheduler:
    """Plans groups for one device; equal groups are planned once."""

    def __init__(self, device: Device) -> None:
        """Make a scheduler that has planned nothing yet."""
        self.device = device
        self._plans: dict[Group, Plan | Refusal] = {}
        self._fitting: dict[tuple[Group, int], bool] = {}
        self._needs: dict[int, Needs] = {}
        self._isomorphic: dict[Group, Plan | Refusal] = {}
        self._likely: Likely = {}

    def plan(self, group: Group) -> Plan | Refusal:
        """Return the plan with the least predicted time, or why there is none."""
        if group not in self._plans:
            kept = _kept_plan(group, self.device)
            if not kept:
                kept.append(self._planned(group))
            self._plans[group] = kept[0]
        return self._plans[group]

    def _planned(self, group: Group) -> Plan | Refusal:
        """Return the plan of a group, with the tile of one that was planned before.

        Where slices begin makes no difference to what tiles cost.
        """
        moved = group.with_slices_moved()
        known = self._isomorphic.get(moved)
        if isinstance(known, Refusal):
            return known
        if known is not None and known.tiles.blocks is None:
            found = self._trials(group).plan(known.tile, None)
            if isinstance(found, Plan):
                return found
        plan = _fastest(self._trials(group), self._likely)
        self._isomorphic.setdefault(moved, plan)
        return plan

    def fits(self, group: Group, traffic: int) -> bool:
        """Whether some tile has a plan that moves no more than so many bytes."""
        key = (group, traffic)
        if key not in self._fitting:
            trials = self._trials(group)
            choices = _choices(trials)
            likely = self._likely.get(_ending(group))
            if likely is not None and (likely, None) in choices:
                choices.insert(0, (likely, None))
            plans = (trials.plan_within(*choice, math.inf) for choice in choices)
            self._fitting[key] = any(
                isinstance(plan, Plan) and plan.cost.traffic <= traffic
                for plan in plans
            )
        return self._fitting[key]

    def plan_tile(
        self, group: Group, tile: tuple[int, ...], step: int | None = None
    ) -> Plan | Refusal:
        """Return the plan with a given tile, or why there is none.

        Args:
            group: The operators.
            tile: The tile.
            step: Size of the blocks of what is streamed, None for nothing; another
                one is only for groups that cannot do without.
        """
        candidates = candidate_blocks(
            group, self.device, tile_levels(self.device), step
        )
        trials = self._trials(group)
        plans = [trials.plan(tile, blocks) for blocks in candidates]

        def order(plan: Plan) -> tuple[bool, float]:
            blocks = plan.tiles.blocks
            asked = step == (None if blocks is None else blocks.size)
            return (not asked, plan.cost.seconds)

        possible = [plan for plan in plans if isinstance(plan, Plan)]
        return min(possible, key=order) if possible else plans[0]

    def price(
        self, group: Group, tile: tuple[int, ...], blocks: Blocks | None
    ) -> Plan | Refusal:
        """Return the plan that a tile and blocks make, or why they make none."""
        return self._trials(group).plan(tile, blocks)

    def ranking(self, group: Group, slack: float) -> list[Plan]:
        """Return the possible plans, that of `plan` first, then by predicted time.

        Args:
            group: The operators.
            slack: Share of the time of the fastest that a plan may take more.
        """
        return rank(self._trials(group), slack, self._likely)[0]

    def traffic_apart(self, group: Group) -> int:
        """Return the bytes that the nodes move when nothing is connected."""
        return sum(self._traffic(group.alone(i)) for i in range(len(group.nodes)))

    def most_traffic(self, group: Group) -> int:
        """Return the bytes that the nodes may move together to be no more than apart.

        Tiles read small tensors again, which is not counted for nodes on their own.
        """
        return int(self.traffic_apart(group) * (1 + MODEL_ACCURACY))

    def apart(self, group: Group) -> tuple[Plan, ...]:
        """Return the plans of the nodes when nothing is connected, of those with one.

        An operator that fits no level runs as one tile from outside; the model says
        nothing of its time.
        """
        plans = (self.plan(group.alone(i)) for i in range(len(group.nodes)))
        return tuple(plan for plan in plans if isinstance(plan, Plan))

    def propagate_whole(self, group: Group) -> Tiles | Refusal:
        """Return what every node computes for all of a result, or why that fails."""
        needs = self._needs_of(group)
        return Propagation(group, None, needs).tiles(group.root.whole_tile)

    def _trials(self, group: Group) -> Trials:
        levels, needs = tile_levels(self.device), self._needs_of(group)
        return Trials(group, self.device, levels, staged_step(group), needs)

    def _needs_of(self, group: Group) -> Needs:
        loops = len(group.root.extents)
        return self._needs.setdefault(loops, Needs(loops))

    def _traffic(self, alone: Group) -> int:
        if alone.root.kind is OperatorKind.CONTRACTION:
            # Its operands are read again for every tile unless a cache holds them.
            plan = self.plan(alone)
            if isinstance(plan, Plan):
                return plan.cost.traffic
        node = alone.root
        reads = {t: node.read_bytes(node.reads[i]) for _, i, t in alone.outer_reads}
        return sum(reads.values()) + sum(w.total_bytes for w in alone.root.writes)


def schedule(group: Group, device: Device) -> Plan | Refusal:
    """Return the plan with the least predicted time, or why there is none."""
    return Scheduler(device).plan(group)


# Groups come up again: in the passes of one graph, and in graphs of equal tiles.
@functools.lru_cache(maxsize=4096)
def _kept_plan(group: Group, device: Device) -> list[Plan | Refusal]:
    """Return where the plan of a group is kept; it is empty at first."""
    return []


def _fastest(trials: Trials, likely: Likely) -> Plan | Refusal:
    plans, refusals = rank(trials, likely=likely)
    if plans:
        return plans[0]
    refusal = _closest(refusals)
    return with_reason(refusal, trials.group, trials.device, trials.levels)


def _closest(refusals: list[Refusal]) -> Refusal:
    """Return why the tile that is closest to a plan has none, and what others lack.

    Closest is the least memory that would suffice without too much arithmetic; where
    no tile is large enough for that, the least arithmetic.
    """
    rules = dict.fromkeys(("footprint", "recompute", *(one.rule for one in refusals)))
    closest = [
        min(equal, key=lambda one: one.excess)
        for rule in rules
        if (equal := [one for one in refusals if one.rule == rule])
    ]
    first, *others = closest
    details = (f"other tiles: {one.rule}, {one.detail}" for one in others)
    return Refusal(first.rule, "; ".join((first.detail, *details)), first.excess)


def rank(
    trials: Trials, slack: float = MODEL_ACCURACY, likely: Likely | None = None
) -> tuple[list[Plan], list[Refusal]]:
    """Return the plans that are fast enough, best first, and why tiles have none.

    Args:
        trials: What tries tiles for a group.
        slack: Share of the time of the fastest that a plan may take more. Tiles that
            certainly do are not looked at, so that what they are refused for is known
            of all tiles only if none has a plan.
        likely: Tiles to begin with; that of the group is added. They make no difference
            to what is found.
    """
    root, choices = trials.group.root, _choices(trials)
    likely = {} if likely is None else likely
    ending = _ending(trials.group)
    first = _first(trials, choices, likely.get(ending))
    plans, refusals = _tried(trials, choices, slack, first)
    if plans and root.tileable:
        fastest = min(plans, key=lambda plan: plan.cost.seconds)
        if fastest.tiles.blocks is None:
            likely[ending] = fastest.tile
        plans += refined(fastest, trials, MODEL_ACCURACY)
    least = min((plan.cost.seconds for plan in plans), default=0.0)
    nests = trials.group.nests()
    transposed = trials.device.threads > 1 and any(
        nests.transposed_reads(number) for number in nests.members
    )

    streamed = is_streamed(trials.group, trials.device)
    by = trials.device if streamed else None

    def order(plan: Plan) -> tuple[float, ...]:
        if plan.cost.seconds <= least * (1 + MODEL_ACCURACY):
            liked = preference(root, plan, transposed=transposed, streamed_by=by)
            return (0.0, *liked)
        return (1.0, plan.cost.seconds)

    fast = (plan for plan in plans if plan.cost.seconds <= least * (1 + slack))
    return sorted(map(trials.placed, fast), key=order), refusals


def _choices(trials: Trials) -> list[Choice]:
    """Tiles and blocks to try, large tiles first.

    The largest that there is room for is seldom far from the best.
    """
    root = trials.group.root
    # What is computed whole anyway would be computed again for every tile.
    tiles = [root.whole_tile]
    if root.tileable:
        sizes = root_sizes(root, ragged=may_be_ragged(trials.device))
        tiles = list(candidate_tiles(sizes))
        has_rows = has_rows_of_columns(trials.group.nodes, trials.device)
        if has_rows and len(sizes) > 2:
            # Whole rows are one with their neighbours for matrix instructions.
            *outer, rows, columns, row = sizes
            kept = [*(few[:1] for few in outer), rows, columns, row[-1:]]
            tiles = list(dict.fromkeys((*tiles, *candidate_tiles(kept))))
    ways = candidate_blocks(trials.group, trials.device, trials.levels)
    if trials.device.threads > 1:
        streamed = list(stream_tiles(root)) if root.tileable else []
        choices = [
            *itertools.product(tiles, ways[:1]),
            *itertools.product(streamed, ways[1:]),
        ]
    else:
        choices = list(itertools.product(tiles, ways))
    return sorted(choices, key=lambda one: -math.prod(one[0]))


def _ending(group: Group) -> tuple[OperatorKind, Tile]:
    """What groups have in common that are fastest with about the same tiles."""
    return group.root.kind, group.root.whole_tile


def _first(trials: Trials, choices: Sequence[Choice], tile: Tile | None) -> Plan | None:
    """The plan with a tile that is likely to be fast, if it is one of the choices.

    Most groups are others with an operator more. What takes longer than such a tile is
    not priced to its end, however early its turn comes.
    """
    if tile is None or (tile, None) not in choices:
        return None
    found = trials.plan_within(tile, None, math.inf)
    return found if isinstance(found, Plan) else None


def _tried(
    trials: Trials, choices: Iterable[Choice], slack: float, first: Plan | None
) -> tuple[list[Plan], list[Refusal]]:
    """The plans and refusals of tiles, without what is too slow.

    Args:
        trials: What tries tiles for a group.
        choices: What to try.
        slack: As of `rank`.
        first: The plan of one of the choices, if that is known.
    """
    plans: list[Plan] = []
    refusals: list[Refusal] = []
    limit = math.inf if first is None else first.cost.seconds * (1 + slack)
    for tile, blocks in choices:
        is_first = first is not None and (tile, blocks) == (first.tile, None)
        found = first if is_first else trials.plan_within(tile, blocks, limit)
        if isinstance(found, Plan):
            plans.append(found)
            limit = min(limit, found.cost.seconds * (1 + slack))
        elif isinstance(found, Refusal):
            refusals.append(found)
    return plans, refusals
