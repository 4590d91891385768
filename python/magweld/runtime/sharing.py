"""Owns the question whether tensors share memory."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def shares_memory(tensors: Sequence[Tensor]) -> bool:
    """Tell whether two of the tensors that have elements are in one storage."""
    used = [t.untyped_storage().data_ptr() for t in tensors if t.numel()]
    return len(set(used)) < len(used)
