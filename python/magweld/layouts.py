"""Owns layouts at nodes of a captured graph: what eager gave the tensors of a node.

A run on tensors without data has other strides than eager in places, most of them at
dimensions of one element. The captured run knows what eager gave.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import fx

Layout = tuple[tuple[int, ...], tuple[int, ...]]

_KEY: Final = "layout"


def layout_of(tensor: torch.Tensor) -> Layout | None:
    """Return shape and strides in elements; None if a tensor has none."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    return tuple(tensor.shape), tensor.stride()


def note_layout(node: fx.Node, tensor: torch.Tensor) -> None:
    """Note what a node's tensor looks like now; copies of the node keep it."""
    node.meta[_KEY] = layout_of(tensor)


def keep_final_layout(node: fx.Node, tensor: torch.Tensor | None) -> None:
    """Drop what was noted at a node if its tensor looks different by now."""
    if tensor is None or node.meta.get(_KEY) != layout_of(tensor):
        node.meta.pop(_KEY, None)


def noted_layout(node: Any) -> Layout | None:
    """Return what was noted at a node, None if nothing was."""
    layout: Layout | None = node.meta.get(_KEY) if isinstance(node, fx.Node) else None
    return layout
