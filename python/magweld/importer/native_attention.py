"""Owns torch's function for whole layers of self-attention, written as others.

Torch has it for inference: it projects, attends and projects once more.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from magweld.importer.attention import AttentionOptions, attention, weights_of
from magweld.importer.dtypes import generated_floats_only

# Which masks it takes: of queries and keys; of batches and keys; of all four.
_OF_KEYS = 1


@generated_floats_only
def native_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    """Return attention and its weights; these are None where they are not needed."""
    if query is not key or key is not value or query.dim() != 3 or query.is_nested:
        return NotImplemented
    batch, length, width = query.shape
    projected = F.linear(query, qkv_weight, qkv_bias)
    parts = projected.view(batch, length, 3, num_head, width // num_head)
    queries, keys, values = parts.permute(2, 0, 3, 1, 4).unbind()
    options = AttentionOptions(_shown(mask, mask_type), zeros=False)
    weights = None
    if need_weights:
        weights = weights_of(queries, keys, options)[0]
        attended = weights @ values
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        attended = attention(queries, keys, values, options)[0]
    rows = attended.transpose(1, 2).reshape(batch, length, width)
    return F.linear(rows, proj_weight, proj_bias), weights


def _shown(mask: Tensor | None, mask_type: int | None) -> Tensor | None:
    """Return which keys are seen; the function is told which are not."""
    if mask is None:
        return None
    shown = mask.to(torch.bool).logical_not()
    return shown[:, None, None, :] if mask_type == _OF_KEYS else shown
