"""Owns which of several plans is taken that are equally fast by the model."""

from __future__ import annotations

import math

from magweld.passes.tiling.cost import Cost
from magweld.passes.tiling.loads_in_flight import moved_by_thread
from magweld.passes.tiling.regions import OperatorModel
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.tile_sizes import shapes_of_tiles
from magweld.targets.device import Device

# Bytes of a run of memory in which prefetchers are under way; longer ones gain less
# than a small footprint.
LONG_RUN = 1024


def preference(
    root: OperatorModel,
    plan: Plan,
    *,
    transposed: bool = False,
    streamed_by: Device | None = None,
) -> tuple[float, ...]:
    """Return what is less for a better one of the plans of a group that ends in `root`.

    One shape of tiles, few blocks, whole rows, rows that follow each other, then a
    small footprint.

    Args:
        root: The operator.
        plan: The plan.
        transposed: Whether threads stage what they read across its rows: long rows of
            results are short ones there, so that transactions and footprint count.
        streamed_by: The device whose threads stream tiles, None where they do not:
            what each of them moves counts there, and transactions that are wasted.
    """
    shapes = shapes_of_tiles(root.whole_tile, plan.tile, root.runtime)
    rows = plan.tile[-1] / root.grid_extents[-1] if plan.tile else 1.0
    blocks = 0 if plan.tiles.blocks is None else plan.tiles.blocks.count
    run = min(_run(root, plan.tile), LONG_RUN)
    if transposed:
        cost = plan.cost
        return (shapes, blocks, cost.tile_traffic, -run, cost.footprint, cost.seconds)
    if streamed_by is not None:
        cost = plan.cost
        moved = moved_by_thread(cost.tile_traffic, plan.tiles.grid, streamed_by)
        return (shapes, blocks, _wasted(cost), moved, -run, -rows, cost.footprint)
    return (shapes, blocks, -rows, -run, plan.cost.footprint, plan.cost.seconds)


def _wasted(cost: Cost) -> int:
    """Return by how many powers of two tiles move more than memory does.

    Pieces of rows that transactions are too wide for do.
    """
    return round(math.log2(max(1, cost.tile_traffic) / max(1, cost.traffic)))


def _run(root: OperatorModel, tile: tuple[int, ...]) -> int:
    """Return the bytes of a tile of results that lie next to each other in memory."""
    run = root.writes[0].element_bytes
    for size, extent in zip(reversed(tile), reversed(root.grid_extents), strict=True):
        run *= size
        if size < extent:
            break
    return run
