"""Owns the reading of pads: how far an operand reaches beyond the tensor behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.constants import constant_number

_WINDOWED = ("linalg.conv", "linalg.depthwise_conv", "linalg.pooling")


@dataclass(frozen=True)
class Pad:
    """A tensor with a border of one constant around it.

    Attributes:
        source: The tensor without the border.
        low: Elements before it, one number for each dimension.
        high: Elements behind it, likewise.
        fill: The constant, a scalar value.
    """

    source: Any
    low: tuple[int, ...]
    high: tuple[int, ...]
    fill: Any


def static_pad(value: Any) -> Pad | None:
    """Return the pad that makes a tensor, None for anything but a constant border."""
    op = defining_op(value)
    if op is None or op.operation.name != "tensor.pad":
        return None
    pad = op.operation
    low = tuple(ir.DenseI64ArrayAttr(pad.attributes["static_low"]))
    high = tuple(ir.DenseI64ArrayAttr(pad.attributes["static_high"]))
    *_, terminator = pad.regions[0].blocks[0].operations
    fill = terminator.operands[0]
    if len(pad.operands) > 1 or min((*low, *high), default=0) < 0:
        return None
    if constant_number(fill) is None:
        return None
    return Pad(pad.operands[0], low, high, fill)


def is_part_of_windows(op: Any, *, copied: bool = True) -> bool:
    """Tell whether an operation is a pad that only operations on windows read.

    Args:
        op: The operation.
        copied: Whether copies that put windows side by side are such operations.
    """
    if op.name != "tensor.pad":
        return False
    uses = list(op.results[0].uses)
    return all(
        use.owner.operation.name.startswith(_WINDOWED)
        or (copied and _copies_windows(use))
        for use in uses
    )


def _copies_windows(use: Any) -> bool:
    """Whether what uses an image copies elements at sums of loops."""
    op = use.owner.operation
    if op.name != "linalg.generic" or len(op.regions[0].blocks[0].operations) > 1:
        return False
    map_ = ir.ArrayAttr(op.attributes["indexing_maps"])[use.operand_number].value
    return any(isinstance(expr, ir.AffineAddExpr) for expr in map_.results)
