"""Owns random numbers in the order in which torch draws them for a tensor's memory."""

from __future__ import annotations

import torch
from torch import Tensor


def bernoulli(like: Tensor, probability: float) -> Tensor:
    """Return zeros and ones, drawn as `torch.empty_like(like).bernoulli_` draws them.

    The operator without a write draws in logical order; eager torch's composites write
    to a tensor with the strides of `like` and so draw in the order of its memory.

    Args:
        like: Tensor of the shape and memory order of the result.
        probability: Of a one.
    """
    strides = torch.empty_like(like).stride()
    order = sorted(range(like.dim()), key=lambda axis: -strides[axis])
    # Detached: no gradient goes to a tensor that only lends its shape.
    shape = like.detach().permute(order)
    drawn: Tensor = torch.ops.aten.bernoulli.p(shape, probability)
    return drawn.permute([order.index(axis) for axis in range(like.dim())])
