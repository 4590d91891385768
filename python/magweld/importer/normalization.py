"""Owns normalisations as means, differences and an affine map, all in one precision.

Each returns what the ATen operator of the same name returns, in its order. Reduced
values are computed without the axes of extent one that they are spread over.
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
    dims = range(x.dim() - len(shape), x.dim())
    centred, mean, variance = _centre(x, dims)
    inverse = _spread(torch.rsqrt(variance + eps), x, dims)
    return _affine(centred * inverse, weight, bias), _spread(mean, x, dims), inverse


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
    grouped = x.reshape(batch, groups, channels // groups, *x.shape[2:])
    dims = range(2, grouped.dim())
    centred, mean, variance = _centre(grouped, dims)
    inverse = torch.rsqrt(variance + eps)
    shape = (groups, channels // groups, *[1] * (x.dim() - 2))
    result = _affine(
        centred * _spread(inverse, grouped, dims),
        None if weight is None else weight.view(shape),
        None if bias is None else bias.view(shape),
    )
    return result.view(x.shape), mean, inverse


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
    centred, mean, variance = _centre(x, dims)
    inverse = _spread(torch.rsqrt(variance + eps), x, dims)
    rank = x.dim() - 2
    result = _affine(centred * inverse, _channel(weight, rank), _channel(bias, rank))
    return result, mean, variance


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


def _centre(x: Tensor, dims: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Return what is left of `x` without its mean, the mean and the variance."""
    mean = x.mean(list(dims))
    centred = x - _spread(mean, x, dims)
    return centred, mean, (centred * centred).mean(list(dims))


def _spread(reduced: Tensor, x: Tensor, dims: Sequence[int]) -> Tensor:
    shape = [1 if axis in dims else extent for axis, extent in enumerate(x.shape)]
    return reduced.view(shape)


def _channel(parameter: Tensor | None, rank: int) -> Tensor | None:
    return None if parameter is None else parameter.view(-1, *[1] * rank)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        x = x * weight
    return x if bias is None else x + bias
