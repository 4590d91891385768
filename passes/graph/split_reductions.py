"""Owns the pass that makes long reductions in parts, which idle units can share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import func, ir, linalg
from magweld.dialects.tile_graph import is_tile_graph
from magweld.passes.analysis.cloning import (
    ValueMap,
    clone_helper,
    clone_mapped,
    defining_op,
)
from magweld.passes.analysis.cost import cost
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.analysis.long_reductions import Reduction, reduction_of
from magweld.passes.analysis.operator_model import element_bytes, is_rematerialised
from magweld.passes.analysis.policy import (
    MODEL_ACCURACY,
    Plan,
    Scheduler,
    divisors,
    staged_step,
    tile_levels,
)
from magweld.passes.analysis.propagation import Group, Refusal, propagate
from magweld.passes.base import FunctionPass
from magweld.passes.graph.form_tile_graph import FormTileGraph
from magweld.passes.graph.partial_reductions import Splitter, operands_along, repeated
from magweld.passes.graph.select_implementation import LibraryUse, SelectImplementation
from magweld.targets import device as device_named

# More parts leave nothing idle that this many for each unit would, ...
PARTS_OF_UNIT = 4
# ... or need no less memory than this many for each time that it is exceeded.
PARTS_OF_ROOM = 16
# Numbers of parts that are compared for one loop.
MAX_CHOICES = 8


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
    two results or of narrow floats, products for a library, operands that another
    product makes, and those that others read in the same fast level.

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
        _erase_unread(function)


def _erase_unread(function: Any) -> None:
    """Erase what nobody reads any more."""
    for op in reversed(list(function.regions[0].blocks[0].operations)):
        pure = op.operation.name.startswith(("linalg.", "tensor."))
        if pure and not any(list(result.uses) for result in op.operation.results):
            op.operation.erase()


@dataclass(frozen=True)
class _Chain:
    """A reduction and the elementwise operations that make its operands.

    Attributes:
        ops: In their order, the reduction last.
        ends: What they read that varies along the loops that are reduced.
    """

    ops: tuple[Any, ...]
    ends: frozenset[Any]


def _chain(reduction: Reduction) -> _Chain:
    found: dict[Any, None] = {}
    ends: set[Any] = set()

    def visit(value: Any, dim: int) -> None:
        producer = repeated(value)
        if producer is None:
            ends.add(value)
            return
        maps = [attribute.value for attribute in producer.indexing_maps]
        for operand, along in operands_along(producer, maps, dim):
            visit(operand, along)
        found[producer.operation] = None

    for loop in reduction.reduced:
        for value, dim in operands_along(reduction.op, reduction.maps, loop):
            visit(value, dim)
    block = reduction.op.block.operations
    ops = [op.operation for op in block if op.operation in found]
    return _Chain((*ops, reduction.op), frozenset(ends))


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


class _Judge:
    """Decides how a reduction is split."""

    def __init__(self, device: str, library: LibraryUse) -> None:
        self._form = FormTileGraph(device)
        self._device = device_named(device)
        self._library = SelectImplementation(library)
        self._scheduler = Scheduler(self._device)

    def choice(self, reduction: Reduction) -> tuple[int, int] | None:
        """Return the loop to split and into how many parts; None for not at all."""
        chain = _chain(reduction)
        trial = self._trial(chain, None)
        operators = trial.body.operators
        whole = self._predicted(trial.body, list(range(len(operators))))
        if whole.grid >= self._device.units or not self._may_be_split(chain, whole):
            return None
        if self._library.uses_library(operators[-1], self._device):
            return None
        best, least = None, whole.seconds * (1 - MODEL_ACCURACY)
        for loop in reduction.reduced:
            for parts in self._choices(reduction, loop):
                trial = self._trial(chain, (loop, parts))
                *first, last = range(len(trial.body.operators))
                seconds = sum(
                    self._predicted(trial.body, members).seconds
                    for members in (first, [last])
                )
                if seconds < least:
                    best, least = (loop, parts), seconds * (1 - MODEL_ACCURACY)
        return best

    def _may_be_split(self, chain: _Chain, whole: _Prediction) -> bool:
        """Whether it stands in the way of nothing that is better."""
        makers = [defining_op(value) for value in chain.ends]
        if any(m and linalg.isa_contraction_op(m.operation) for m in makers):
            return False  # the reduction may be done block by block behind it
        if not whole.grid:
            return True
        inside = set(chain.ops)
        return all(
            use.owner.operation in inside for value in chain.ends for use in value.uses
        )

    def _choices(self, reduction: Reduction, loop: int) -> list[int]:
        outer = tile_levels(self._device)[0]
        operands = (ir.RankedTensorType(v.type) for v in reduction.op.operands)
        size = sum(math.prod(t.shape) * element_bytes(t) for t in operands)
        fits = PARTS_OF_ROOM * -(-size // outer.capacity) if outer.capacity else 0
        most = max(PARTS_OF_UNIT * self._device.units, fits)
        choices = [d for d in divisors(reduction.extents[loop]) if 1 < d <= most]
        while len(choices) > MAX_CHOICES:
            del choices[1:-1:2]
        return choices

    def _trial(self, chain: _Chain, choice: tuple[int, int] | None) -> _Trial:
        with ir.Location.unknown():
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                function = _function(chain)
            *_, root, _ = function.regions[0].blocks[0].operations
            reduction = reduction_of(root)
            if choice is not None and reduction is not None:
                result = Splitter().split(reduction, *choice)
                root.results[0].replace_all_uses_with(result)
                _erase_unread(function)
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


def _function(chain: _Chain) -> Any:
    """A function of the operations of a chain, which takes what they read."""
    made = {result for op in chain.ops for result in op.results}
    read = dict.fromkeys(
        value
        for op in chain.ops
        for value in op.operands
        if value not in made and not is_rematerialised(value)
    )
    types = [value.type for value in read]
    root = chain.ops[-1]
    function = func.FuncOp("main", (types, [root.results[0].type]))
    values = ValueMap()
    with ir.InsertionPoint(function.add_entry_block()):
        for value, argument in zip(read, function.arguments, strict=True):
            values[value] = argument
        for op in chain.ops:
            for value in op.operands:
                if is_rematerialised(value):
                    clone_helper(value, values)
            clone_mapped(op, values)
        func.ReturnOp([values[root.results[0]]])
    return function
