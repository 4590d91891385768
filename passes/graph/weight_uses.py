"""Owns how often tiles would transform the weights of a convolution themselves."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

from magweld.bindings import ir, scf
from magweld.passes.analysis.winograd import FORMS, block_count, winograd_tile


def transforms_in_tiles(op: Any) -> int:
    """Return how often each weight is transformed if every block of tiles does so.

    Args:
        op: A convolution in loops over tiles whose weights are rows of some argument.
    """
    rows: int
    images, rows, high, wide = ir.RankedTensorType(op.results[0].type).shape
    depth = ir.RankedTensorType(op.operands[0].type).shape[1]
    form = FORMS[winograd_tile(op)]
    down, across = ceil(high / form.tile), ceil(wide / form.tile)
    blocks = block_count(form, depth, (images, down, across))
    times: int = blocks * _iterations(op)
    return ceil(times * rows / _all_rows(op))


def _iterations(op: Any) -> int:
    number, parent = 1, op.parent
    while parent is not None:
        loop = parent.opview
        if isinstance(loop, scf.ForallOp):
            number *= prod(
                ceil((upper - lower) / step)
                for lower, upper, step in zip(
                    loop.staticLowerBound,
                    loop.staticUpperBound,
                    loop.staticStep,
                    strict=True,
                )
            )
        parent = parent.parent
    return number


def _all_rows(op: Any) -> int:
    """Rows of the argument that the weights are some rows of."""
    weights = op.operands[1]
    if not isinstance(weights, ir.BlockArgument):
        maker = weights.owner.operation
        if maker.name == "tensor.extract_slice":
            weights = maker.operands[0]
    return int(ir.RankedTensorType(weights.type).shape[0])
