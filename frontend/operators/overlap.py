"""Owns the question how tensors that share memory lie in it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import torch

from magweld.frontend.operators.watch import storage_of


def neighbours(
    tensors: Sequence[torch.Tensor], of: Iterable[int]
) -> tuple[tuple[tuple[int, Hashable], ...], ...]:
    """Return for some tensors which others share their memory, and how they lie.

    What can happen to one by a write to the other is the same in two calls in which
    this is the same. Tensors beside each other may lie anywhere.
    """
    sharing: dict[int, list[int]] = {}
    groups = [sharing.setdefault(storage_of(tensor), []) for tensor in tensors]
    for number, group in enumerate(groups):
        group.append(number)
    return tuple(
        tuple(
            (other, _place(tensors[number], tensors[other]))
            for other in groups[number]
            if other != number
        )
        for number in of
    )


def _place(tensor: torch.Tensor, other: torch.Tensor) -> Hashable:
    """Return how a tensor lies to another one, None if beside it."""
    start, end = _extent(tensor)
    first, last = _extent(other)
    if end <= first or last <= start:
        return None
    # A key of compiled forms holds this.
    forms = ((item.shape, item.stride(), item.dtype) for item in (tensor, other))
    return first - start, *forms


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the first byte of a tensor in its storage, and the one behind its last."""
    size = tensor.element_size()
    start = int(tensor.storage_offset()) * size
    if tensor.numel() == 0:
        return start, start
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    count = 1 + sum((n - 1) * step for n, step in pairs)
    return start, start + int(count) * size
