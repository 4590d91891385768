"""Execution plans: places that keep what was promised, barriers that are needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from test_streaming import KEYS, QUERIES, SIZE, only, pointwise, product, row
from test_tiled_numerics import GRAPHS, STREAMED, Lower, steps

from magweld.bindings import ir
from magweld.dialects.tile_graph import BarrierOp, ForTilesOp
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Step
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.middle import graph_steps
from magweld.passes.tile.form_tile_graph import FormTileGraph
from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.placement import Placement, Slot, place_tile
from magweld.passes.tiling.propagation import Tiles, propagate
from magweld.passes.tiling.regions import BodyForm
from magweld.passes.tiling.stream import Blocks, Stream
from magweld.targets.device import Level, LevelKind

CACHE = Level("l2", 1 << 20, 100.0, 64, 1, LevelKind.CACHE)


def planned(choice: str | None, block: int | None = None) -> list[Step]:
    """Return the steps to execution plans, see `steps`."""
    found = steps(choice, block)
    last = [step.name for step in found].index("plan-execution")
    return found[: last + 1]


def places(plan: Any) -> Iterator[Any]:
    def visit(op: ir.Operation) -> ir.WalkResult:
        if "place" in op.attributes:
            found.append(op.attributes["place"])
        return ir.WalkResult.ADVANCE

    found: list[Any] = []
    plan.operation.walk(visit)
    return iter(found)


def promises_kept(module: ir.Module) -> int:
    """Compare the footprint of all plans to their places; return how many have one."""
    plans = operations_of(module.operation, ForTilesOp)
    promised = [plan for plan in plans if "footprint" in plan.attributes]
    for plan in promised:
        ends = [-(-place.end // 64) * 64 for place in places(plan)]
        assert max(ends, default=0) == plan.attributes["footprint"].value, plan
    return len(promised)


@pytest.mark.sample(15)
@pytest.mark.parametrize("choice", [None, "first"])
@pytest.mark.parametrize("path", sorted(GRAPHS.glob("*.mlir")), ids=lambda p: p.stem)
def test_places_are_the_promised_footprint(
    path: Path, choice: str | None, lower: Lower
) -> None:
    kept = promises_kept(lower(path.read_text(), planned(choice)))
    # What somebody else chose may have no footprint.
    assert kept or choice is not None


@pytest.mark.parametrize("path", STREAMED, ids=lambda p: p.stem)
def test_places_of_blocks_are_the_promised_footprint(path: Path, lower: Lower) -> None:
    assert promises_kept(lower(path.read_text(), planned("first", 4)))


def test_what_blocks_add_to_lies_apart_from_what_they_load() -> None:
    nodes = (
        product("scores", QUERIES, KEYS, SIZE),
        row("rows", BodyForm.MAXIMUM),
        pointwise("difference", 2, BodyForm.DIFFERENCE),
        pointwise("weights", 1, BodyForm.EXPONENTIAL),
        product("values", QUERIES, SIZE, KEYS),
    )
    sources = (
        (Source(None, 0), Source(None, 1)),
        (Source(0, 2),),
        (Source(0, 2), Source(1, 3)),
        (Source(2, 4),),
        (Source(3, 5), Source(None, 6)),
    )
    group = Group(nodes, sources)
    stream = only(group)
    assert isinstance(stream, Stream)
    tiles = propagate(group, (16, 32), Blocks(stream, 128))
    assert isinstance(tiles, Tiles)
    placement = place_tile(group, tiles, CACHE, 1)
    kept = list(placement.tops.values())
    kept += [placement.tiles[node, 0] for node in stream.accumulators(group)]
    assert len(kept) == 3
    for slot in kept:
        assert all(apart(slot, other) for other in in_a_block(placement, kept))
    assert all(apart(one, other) for one, other in combinations(kept, 2))


def in_a_block(placement: Placement, kept: list[Slot]) -> Iterator[Slot]:
    yield from placement.reads.values()
    yield from (slot for slot in placement.tiles.values() if slot not in kept)


def apart(one: Slot, other: Slot) -> bool:
    return one.offset + one.size <= other.offset or (
        other.offset + other.size <= one.offset
    )


@pytest.mark.parametrize("name", ["attention", "softmax", "layer_norm", "linear"])
def test_every_barrier_of_a_plan_is_needed(name: str, lower: Lower) -> None:
    phases = graph_steps("v100", "never")
    found: list[Step] = [FormTileGraph("v100")]
    found += [*phases[Phase.SCHEDULED], *phases[Phase.PLANNED]]
    module = lower((GRAPHS / f"{name}.mlir").read_text(), found)
    assert module.operation.verify()
    count = len(operations_of(module.operation, BarrierOp))
    assert count
    for number in range(count):
        other = ir.Module.parse(str(module), module.context)
        operations_of(other.operation, BarrierOp)[number].operation.erase()
        with pytest.raises(ir.MLIRError, match=r"expected a 'tile_graph\.barrier'"):
            other.operation.verify()
