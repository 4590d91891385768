"""Owns scaled dot-product attention as products, a masked softmax and views."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from magweld.importer.randomness import bernoulli


@dataclass(frozen=True)
class AttentionOptions:
    """What varies between calls of attention beside its tensors.

    Attributes:
        mask: Broadcasts to the scores; False or minus infinity hides a key.
        is_causal: Query i sees the keys 0..i.
        scale: Factor of the scores; 1/sqrt(head size) where None.
        dropout: Probability to drop a weight.
        rounded: Type of queries, keys and values where scores are f32: weights are
            rounded to it before they are multiplied.
        zeros: Whether a row of which every key is hidden gives zeros, as those kernels
            of torch do that make no weights; it gives nan otherwise.
    """

    mask: Tensor | None = None
    is_causal: bool = False
    scale: float | None = None
    dropout: float = 0.0
    rounded: torch.dtype | None = None
    zeros: bool = True


def attention(
    query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions
) -> tuple[Tensor, Tensor]:
    """Return attention and the logarithm of the sum of exponentials of its scores.

    Args:
        query: [*batch, queries, size].
        key: [*batch, keys, size]; the last batch dim, the heads, may be a divisor of
            the queries'.
        value: [*batch, keys, value size], likewise.
        options: Mask, scale and dropout.

    Returns:
        [*batch, queries, value size] and [*batch, queries].
    """
    value = _repeat_heads(value, query)
    wide = query.dtype if options.rounded is None else torch.float32
    weights, log_sum = weights_of(query, key, options)
    if options.dropout:
        kept = 1 - options.dropout
        weights = weights * (bernoulli(weights, kept) / kept)
    if options.rounded is not None:
        weights = weights.to(options.rounded)
    return _batched(weights, value, wide), log_sum


def weights_of(
    query: Tensor, key: Tensor, options: AttentionOptions
) -> tuple[Tensor, Tensor]:
    """Return the weights of the values, and the second result of `attention`.

    Args:
        query: As of `attention`.
        key: As of `attention`.
        options: As of `attention`; no weight is dropped.

    Returns:
        [*batch, queries, keys] and [*batch, queries].
    """
    key = _repeat_heads(key, query)
    size = query.shape[-1]
    scale = 1.0 / math.sqrt(size) if options.scale is None else options.scale
    wide = query.dtype if options.rounded is None else torch.float32
    scores = _batched(query, key.transpose(-2, -1), wide)
    if scale != 1.0:
        scores = scores * scale
    scores = _hide(scores, options)
    zeros = options.mask is not None and options.zeros
    return _softmax(scores, may_hide_rows=zeros)


def _repeat_heads(x: Tensor, query: Tensor) -> Tensor:
    """Return keys or values once for each of the queries that share them."""
    if x.dim() < 3 or x.shape[-3] == query.shape[-3]:
        return x
    *batch, heads, length, size = x.shape
    shared = x.unsqueeze(-3)
    groups = query.shape[-3] // heads
    return shared.expand(*batch, heads, groups, length, size).reshape(
        *batch, query.shape[-3], length, size
    )


def _batched(left: Tensor, right: Tensor, wide: torch.dtype) -> Tensor:
    """Return the product over the last two dims with all others as one batch.

    It sums in a type that factors are widened to.
    """
    batch = left.shape[:-2]
    count = math.prod(batch)
    product = torch.bmm(
        left.reshape(count, *left.shape[-2:]).to(wide),
        right.reshape(count, *right.shape[-2:]).to(wide),
    )
    return product.view(*batch, *product.shape[-2:])


def _hide(scores: Tensor, options: AttentionOptions) -> Tensor:
    mask = options.mask
    if options.is_causal:
        queries, keys = scores.shape[-2:]
        device = scores.device
        # Numbers of their own: a tensor that is rows and columns cannot be streamed.
        rows = torch.arange(1, queries + 1, device=device).unsqueeze(1)
        mask = rows > torch.arange(keys, device=device).unsqueeze(0)
    if mask is None:
        return scores
    if mask.dtype is torch.bool:
        hidden = _number(-math.inf, scores)
        return torch.where(mask, scores, hidden)
    return scores + mask


def _softmax(scores: Tensor, *, may_hide_rows: bool) -> tuple[Tensor, Tensor]:
    # Row values lack the reduced axis: they are computed as they are stored.
    highest = scores.amax(-1)
    if may_hide_rows:
        # A hidden row has no highest score: its exponentials become 0, not nan.
        lowest = _number(-math.inf, scores)
        zero = _number(0.0, scores)
        highest = torch.where(highest == lowest, zero, highest)
    exponentials = torch.exp(scores - highest.unsqueeze(-1))
    total = exponentials.sum(-1)
    log_sum = highest + torch.log(total)
    if may_hide_rows:
        zero = _number(0.0, scores)
        one = _number(1.0, scores)
        total = torch.where(total == zero, one, total)
    return exponentials * torch.reciprocal(total).unsqueeze(-1), log_sum


def _number(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=like.dtype, device=like.device)
