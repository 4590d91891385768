"""Owns the pass that makes long reductions in parts, which idle units can share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.dialects.tile_graph import is_tile_graph, type_bytes
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.analysis.long_reductions import Reduction, reduction_of
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.tile.form_tile_graph import FormTileGraph
from magweld.passes.tile.partial_reductions import Splitter
from magweld.passes.tile.reduction_chain import (
    Chain,
    chain_behind_product,
    chain_of,
    erase_unread,
    function_of,
)
from magweld.passes.tile.select_implementation import LibraryUse, SelectImplementation
from magweld.passes.tiling.cost import cost
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.level_trial import CACHE_SHARE
from magweld.passes.tiling.policy import (
    MODEL_ACCURACY,
    Scheduler,
    staged_step,
    tile_levels,
)
from magweld.passes.tiling.propagation import Refusal, propagate
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.tile_sizes import divisors
from magweld.targets import device as device_named
from magweld.targets.device import LAUNCH_SECONDS

# More parts leave nothing idle that this many for each unit would, ...
PARTS_OF_UNIT = 4
# ... or need no less memory than this many for each time that it is exceeded.
PARTS_OF_ROOM = 16
# Numbers of parts that are compared for one loop.
MAX_CHOICES = 8
# Elements of a result that a library does not share well: it is as fast as parts are
# for 256 x 256, and slower for fewer.
SMALL_RESULT = 256 * 256
# A reduction that leaves nothing idle is split where this many times the least that it
# could take is predicted, and if parts take less by this factor.
WORTH = 1.5


@dataclass(frozen=True)
class SplitReductions(FunctionPass):
    """Make reductions that leave units of the device idle in two phases.

    ```mlir
    %s = linalg.generic {sum over k < 65536} ins(%x : tensor<2x65536xf32>) ...
    ```
    becomes
    ```mlir
    %e = tensor.expand_shape %x ... into tensor<2x4x16384xf32>
    %p = linalg.generic {sum over k < 16384, magweld.parts = 4} ins(%e : ...)
         -> tensor<4x2xf32>
    %s = linalg.generic {sum over the 4} ins(%p : ...) -> tensor<2xf32>
    ```
    where that is faster by the model: what one unit would do alone takes others, and
    parts fit a level that the whole does not. What makes the operand element by
    element is made in parts too. Parts are equal, their number depends on extents and
    the device only, and they are merged in their order. Left alone: reductions with
    two results or of narrow floats, those that make as much as they read, products for
    a library, operands that another product makes, those that others read in the same
    fast level, what is no slower as a stream with the product that its operands are
    made of, and all where units have no memory of their own.

    Options:
        device: "cpu" for this machine, "a100", "my.toml#mine", ...: docs/devices.md.
        library: Whether a library may compute products: "auto", "never" or "always".
    """

    name: ClassVar[str] = "split-reductions"
    device: str = "cpu"
    library: LibraryUse = "auto"

    def run_on_function(self, function: Any) -> None:
        """Split the reductions of `function` for which that pays."""
        if is_tile_graph(function):
            return
        judge = _Judge(self.device, self.library)
        splitter = Splitter()
        for op in list(function.regions[0].blocks[0].operations):
            reduction = reduction_of(op)
            choice = None if reduction is None else judge.choice(reduction)
            if reduction is not None and choice is not None:
                result = splitter.split(reduction, *choice)
                reduction.op.results[0].replace_all_uses_with(result)
        erase_unread(function)


@dataclass(frozen=True)
class _Trial:
    """A chain, whole or split, as a graph of its own; it lives as its module does."""

    module: Any
    body: GraphBody


@dataclass(frozen=True)
class _Prediction:
    """Seconds of some operators, and the tiles of the last one; 0 if it has no plan."""

    seconds: float
    grid: int


@dataclass(frozen=True)
class _Way:
    """A loop and into how many parts it is split, with what is predicted of that."""

    loop: int
    parts: int
    seconds: float
    grid: int


class _Judge:
    """Decides how a reduction is split."""

    def __init__(self, device: str, library: LibraryUse) -> None:
        self._form = FormTileGraph(device)
        self._device = device_named(device)
        self._library = SelectImplementation(library)
        self._scheduler = Scheduler(self._device)
        # Choices for chains, by what they are as functions: layers repeat.
        self._known: dict[str, tuple[int, int] | None] = {}

    def choice(self, reduction: Reduction) -> tuple[int, int] | None:
        """Return the loop to split and into how many parts; None for not at all."""
        chain = chain_of(reduction)
        # Where units have no memory of their own nothing is done in tiles.
        if not tile_levels(self._device) or not self._may_be_split(reduction, chain):
            return None
        behind = chain_behind_product(chain)
        text = _text(chain if behind is None else behind)
        if text not in self._known:
            self._known[text] = self._choice(reduction, chain, behind)
        return self._known[text]

    def _choice(
        self, reduction: Reduction, chain: Chain, behind: Chain | None
    ) -> tuple[int, int] | None:
        trial = self._trial(chain, None)
        operators = trial.body.operators
        whole = self._predicted(trial.body, list(range(len(operators))))
        idle = whole.grid < self._device.units
        if not idle and whole.seconds < WORTH * self._least_seconds(trial.body):
            return None
        if self._is_for_library(operators[-1]) or self._is_streamed(behind, whole):
            return None
        gain = 1 - MODEL_ACCURACY if idle else 1 / WORTH
        limit = whole.seconds * gain
        # One kernel makes parts and another one merges them.
        if limit <= 2 * LAUNCH_SECONDS:
            return None
        ways = self._ways(reduction, chain)
        return self._best([way for way in ways if way.seconds < limit])

    def _is_streamed(self, behind: Chain | None, whole: _Prediction) -> bool:
        """Whether it takes no longer as a stream with the product that makes operands.

        What is between them is never in memory then.
        """
        if behind is None:
            return False
        trial = self._trial(behind, None)  # its module lives as long
        members = list(range(len(trial.body.operators)))
        plan = self._scheduler.plan(trial.body.group(members))
        if not isinstance(plan, Plan) or plan.tiles.blocks is None:
            return False
        return plan.cost.seconds <= whole.seconds

    def _ways(self, reduction: Reduction, chain: Chain) -> Iterator[_Way]:
        for loop in reduction.reduced:
            for parts in self._choices(reduction, loop):
                trial = self._trial(chain, (loop, parts))
                *first, last = range(len(trial.body.operators))
                made = self._predicted(trial.body, first)
                merged = self._predicted(trial.body, [last])
                seconds = made.seconds + merged.seconds
                yield _Way(loop, parts, seconds, made.grid)

    def _best(self, ways: list[_Way]) -> tuple[int, int] | None:
        """Of those that are as fast as the fastest, the first that leaves least idle.

        The model takes one unit for as good as all where memory is what is waited for.
        """
        limit = min((way.seconds for way in ways), default=0.0) * (1 + MODEL_ACCURACY)
        fast = [way for way in ways if way.seconds <= limit]
        if not fast:
            return None
        best = max(fast, key=lambda way: min(way.grid, self._device.units))
        return best.loop, best.parts

    def _is_for_library(self, operator: Any) -> bool:
        """Libraries share a product by its result: not where that is small."""
        if not self._library.uses_library(operator, self._device):
            return False
        shape = ir.RankedTensorType(operator.results[0].type).shape
        small = math.prod(shape) <= SMALL_RESULT
        return self._library.library == "always" or not small

    def _least_seconds(self, body: GraphBody) -> float:
        """What moving operands and result once, and the arithmetic, take at least."""
        *_, root = body.models
        group = body.group(list(range(len(body.models))))
        reads = {
            tensor: group.nodes[node].reads[number].total_bytes
            for node, number, tensor in group.outer_reads
        }
        moved = sum(reads.values()) + sum(w.total_bytes for w in root.writes)
        flops = sum(math.prod(model.extents) * model.flops for model in body.models)
        outermost = self._device.levels[0].bandwidth * 1e9
        return max(moved / outermost, flops / (self._device.peak_gflops * 1e9))

    def _may_be_split(self, reduction: Reduction, chain: Chain) -> bool:
        """Whether it stands in the way of nothing that is better."""
        read = sum(type_bytes(value.type) for value in chain.ends)
        if type_bytes(reduction.op.results[0].type) >= read:
            return False  # parts are written and read again: more than is read at all
        makers = [defining_op(value) for value in chain.ends]
        if any(m and linalg.isa_contraction_op(m.operation) for m in makers):
            return False  # the reduction may be done block by block behind it
        inside = set(chain.ops)
        share = int(self._room() * CACHE_SHARE)
        return read > share or all(
            use.owner.operation in inside for value in chain.ends for use in value.uses
        )

    def _room(self) -> int:
        """Bytes of the largest level that a unit has for itself; 0 is no limit."""
        return tile_levels(self._device)[0].capacity

    def _choices(self, reduction: Reduction, loop: int) -> list[int]:
        size = sum(type_bytes(value.type) for value in reduction.op.operands)
        room = self._room()
        fits = PARTS_OF_ROOM * -(-size // room) if room else 0
        most = max(PARTS_OF_UNIT * self._device.units, fits)
        choices = [d for d in divisors(reduction.extents[loop]) if 1 < d <= most]
        while len(choices) > MAX_CHOICES:
            del choices[1:-1:2]
        return choices

    def _trial(self, chain: Chain, choice: tuple[int, int] | None) -> _Trial:
        with ir.Location.unknown():
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                function = function_of(chain)
            *_, root, _ = function.regions[0].blocks[0].operations
            reduction = reduction_of(root)
            if choice is not None and reduction is not None:
                result = Splitter().split(reduction, *choice)
                root.results[0].replace_all_uses_with(result)
                erase_unread(function)
            self._form.run_on_function(function)
        return _Trial(module, read_body(function))

    def _predicted(self, body: GraphBody, members: list[int]) -> _Prediction:
        group = body.group(members)
        plan = self._scheduler.plan(group)
        if isinstance(plan, Plan):
            return _Prediction(plan.cost.seconds, plan.tiles.grid)
        if len(members) == 1:
            return _Prediction(self._seconds_as_one_tile(group), 0)
        apart = (self._predicted(body, [member]).seconds for member in members)
        return _Prediction(sum(apart), 0)

    def _seconds_as_one_tile(self, group: Group) -> float:
        """What fits no level runs as one tile, from outside."""
        tiles = propagate(group, group.root.whole_tile)
        levels = tile_levels(self._device)
        if isinstance(tiles, Refusal) or not levels:
            return 0.0  # the model says nothing: it is left alone
        step = staged_step(group)
        return cost(group, tiles, self._device, levels[0], step).seconds


def _text(chain: Chain) -> str:
    """Return a chain as a function of its own, written out."""
    with ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function_of(chain)
    return str(module.operation.get_asm(enable_debug_info=False, assume_verified=True))
