"""Owns how often tiles would transform the weights of a convolution themselves."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

from magweld.bindings import ir, scf
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
            grid = forall_grid(parent.opview)
            assert grid is not None, "loops over tiles are static"
            number *= prod(count for _, _, count in grid)
        parent = parent.parent
    return number
