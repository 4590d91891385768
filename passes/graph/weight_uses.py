"""Owns how often tiles would transform the weights of a convolution themselves."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

from magweld.bindings import ir, scf
from magweld.dialects.tile_graph import RuntimeTiles
from magweld.passes.analysis.winograd import winograd_tile
from magweld.passes.ir.utils import forall_grid
from magweld.passes.tiling.winograd_forms import (
    FORMS,
    block_count,
)


def transforms_in_tiles(op: Any, all_rows: int) -> int:
    """Return how often each weight is transformed if every block of tiles does so.

    Args:
        op: A convolution in loops over tiles.
        all_rows: Rows of the argument that its weights are some rows of.
    """
    rows: int
    images, rows, high, wide = ir.RankedTensorType(op.results[0].type).shape
    depth = ir.RankedTensorType(op.operands[0].type).shape[1]
    blocks = block_count(FORMS[winograd_tile(op)], depth, (images, high, wide))
    times: int = blocks * _iterations(op)
    return ceil(times * rows / all_rows)


def _iterations(op: Any) -> int:
    number, parent = 1, op.parent
    while parent is not None:
        if isinstance(parent.opview, scf.ForallOp):
            number *= _tiles(parent.opview)
        parent = parent.parent
    return number


def _tiles(forall: scf.ForallOp) -> int:
    """Tiles of a loop; for an extent that a call tells those of its stand-in."""
    grid = forall_grid(forall)
    if grid is not None:
        return prod(count for _, _, count in grid)
    runtime = RuntimeTiles.of(forall.operation.parent)
    assert runtime is not None, "other loops over tiles are static"
    return runtime.count(runtime.extent)
