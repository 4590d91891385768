"""Owns reading what autograd knows of a tensor, without changing it."""

from __future__ import annotations

from torch import Tensor
from torch.autograd.graph import Node


def may_be_stale(tensor: Tensor) -> bool:
    """Return whether the node of a tensor may be older than a write to its base.

    Torch makes the new node of a view when it is asked for any of its history, also
    whether it is a leaf. Until then in-place operators may take the view for a leaf,
    and refuse it.
    """
    base = tensor._base
    return base is not None and not base.is_leaf and tensor._version > 0


def gradient_node(tensor: Tensor) -> Node | None:
    """Return the node that made a tensor; None for leaves.

    Raises:
        RuntimeError: Torch might make the node only now, or refuses to tell it: a view
            made without gradients whose base was written with them since.
    """
    if may_be_stale(tensor):
        raise RuntimeError("a view of what was written to has no history of its own")
    return tensor.grad_fn


def is_leaf_with_gradient(tensor: Tensor) -> bool:
    """Return whether gradients are collected in a tensor."""
    try:
        return tensor.requires_grad and gradient_node(tensor) is None
    except RuntimeError:
        return False  # a view of what was written to with gradients is no leaf
