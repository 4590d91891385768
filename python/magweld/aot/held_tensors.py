"""Owns copies of tensors that an artifact holds: they keep elements and strides."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def memory_of(tensor: Tensor) -> Tensor:
    """Return the memory that a tensor spans, of one dimension, without gradients."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((extent - 1) * stride for extent, stride in pairs)
    count = last + 1 if tensor.numel() else 0
    return tensor.detach().as_strided((count,), (1,), tensor.storage_offset())


def held_copy(tensor: Tensor, device: torch.device | None = None) -> Tensor:
    """Return a copy that shares no memory, with the same strides.

    Args:
        tensor: What is copied; a lazily conjugated or negated one is computed. One of
            another layout has no strides, and keeps its layout.
        device: Where the copy is, by default where the tensor is.
    """
    if tensor.layout is not torch.strided:
        return tensor.detach().to(device or tensor.device, copy=True)
    plain = tensor.detach().resolve_conj().resolve_neg()
    memory = memory_of(plain).to(device or plain.device, copy=True)
    return of_memory(memory, plain.shape, plain.stride())


def of_memory(memory: Tensor, shape: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Return the tensor that spans memory from its start on.

    Raises:
        RuntimeError: It does not fit.
    """
    return memory.as_strided(tuple(shape), tuple(stride), 0)
