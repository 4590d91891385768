"""Owns normalisations as means, differences and an affine map, all in one precision.

Each returns what the ATen operator of the same name returns, in its order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def layer_norm(
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise over the last `len(shape)` dims."""
    dims = list(range(x.dim() - len(shape), x.dim()))
    centred, mean, inverse = _centre(x, dims, eps)
    return _affine(centred * inverse, weight, bias), mean, inverse


def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    extent: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise over the channels of each group and all that follows them."""
    grouped = x.reshape(batch, groups, channels // groups * extent)
    centred, mean, inverse = _centre(grouped, [2], eps)
    normal = (centred * inverse).view(x.shape)
    rank = x.dim() - 2
    result = _affine(normal, _channel(weight, rank), _channel(bias, rank))
    return result, mean.view(batch, groups), inverse.view(batch, groups)


def batch_norm_inference(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
) -> Tensor:
    """Normalise by given statistics as one factor and one term for each channel."""
    factor = torch.rsqrt(variance + eps)
    if weight is not None:
        factor = factor * weight
    term = -mean * factor
    if bias is not None:
        term = bias + term
    rank = x.dim() - 2
    return x * factor.view(-1, *[1] * rank) + term.view(-1, *[1] * rank)


def batch_norm_training(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise by the statistics of the batch.

    Returns:
        The result, and mean and (biased) variance of the batch as [channels].
    """
    dims = [0, *range(2, x.dim())]
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(dims, keepdim=True)
    rank = x.dim() - 2
    normal = centred * torch.rsqrt(variance + eps)
    result = _affine(normal, _channel(weight, rank), _channel(bias, rank))
    return result, mean.view(-1), variance.view(-1)


def running_statistics(
    batch: tuple[Tensor, Tensor],
    running: tuple[Tensor, Tensor],
    momentum: float,
    count: int,
) -> tuple[Tensor, Tensor]:
    """Return the running mean and variance after a batch in training.

    Args:
        batch: Mean and biased variance of the batch, [channels] each.
        running: Mean and unbiased variance before.
        momentum: Weight of the batch.
        count: Number of elements for each channel in the batch.
    """
    mean, variance = batch
    unbiased = variance * (count / (count - 1))
    return (
        mean * momentum + running[0] * (1 - momentum),
        unbiased * momentum + running[1] * (1 - momentum),
    )


def _centre(
    x: Tensor, dims: Sequence[int], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(dims, keepdim=True)
    return centred, mean, torch.rsqrt(variance + eps)


def _channel(parameter: Tensor | None, rank: int) -> Tensor | None:
    return None if parameter is None else parameter.view(-1, *[1] * rank)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        x = x * weight
    return x if bias is None else x + bias
