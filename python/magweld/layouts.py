"""Owns layouts at nodes of a captured graph: what eager gave the tensors of a node.

A run on tensors without data has other strides than eager in places, most of them at
dimensions of one element. The captured run knows what eager gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import fx

_KEY: Final = "layout"
_DTYPE: Final = "dtype"
_CREATION: Final = "creation"


@dataclass(frozen=True)
class Layout:
    """What a tensor looks like in memory; strides and offset count elements.

    Attributes:
        memory: Bytes of all of the memory that the tensor is in, -1 if it has none.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    memory: int

    @property
    def form(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape and strides, wherever it begins."""
        return self.shape, self.stride

    def is_like(self, shape: Sequence[int], stride: Sequence[int]) -> bool:
        """Return whether a tensor, maybe of other extents, is laid out the same way.

        Dimensions lie in the same order and fill memory, those of one element too; or
        there are gaps in both, and no dimension of one element.
        """
        mine, other = _dense_order(*self.form), _dense_order(shape, stride)
        if mine is not None or other is not None:
            return mine == other
        return 1 not in (*self.shape, *shape) and _order(self.stride) == _order(stride)


def layout_of(tensor: torch.Tensor) -> Layout | None:
    """Return the layout of a tensor; None if it has none."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    try:
        memory = int(tensor.untyped_storage().nbytes())
    except NotImplementedError:
        memory = -1
    offset = int(tensor.storage_offset())
    return Layout(tuple(tensor.shape), tensor.stride(), offset, memory)


def note_layout(node: fx.Node, tensor: torch.Tensor) -> None:
    """Note what a node's tensor looks like now; copies of the node keep it."""
    node.meta[_KEY] = layout_of(tensor)
    node.meta[_DTYPE] = tensor.dtype


def noted_dtype(node: fx.Node) -> torch.dtype | None:
    """Return the type of the elements that a node's tensor had in the captured run."""
    dtype: torch.dtype | None = node.meta.get(_DTYPE)
    return dtype


def keep_final_layout(node: fx.Node, tensor: torch.Tensor | None) -> None:
    """Note that it is not known if a node's tensor looks different by now."""
    if tensor is None or node.meta.get(_KEY) != layout_of(tensor):
        node.meta[_KEY] = None


def creation_of(tensor: torch.Tensor, *, grad_enabled: bool) -> str:
    """Return how autograd says that a view came about: a name of its `CreationMeta`.

    It asks that before a view is written to with gradients: a part of `split` must not
    be, nor a view that was made while gradients were off.

    Returns:
        "" for what is no view, and where a view that is made now has the same.
    """
    if not tensor._is_view() or tensor.is_inference():
        return ""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return ""  # nothing with gradients can be written to it
    creation: str = torch._C._autograd._get_creation_meta(tensor).name
    return (
        "" if creation == ("DEFAULT" if grad_enabled else "NO_GRAD_MODE") else creation
    )


def note_creation(node: fx.Node, creation: str) -> None:
    """Note what `creation_of` a node's tensor is at the end of the captured run."""
    node.meta[_CREATION] = creation


def noted_creation(node: Any) -> str:
    """Return what was noted of how a node's tensor came about."""
    return str(node.meta.get(_CREATION, "")) if isinstance(node, fx.Node) else ""


def noted_layout(node: Any) -> Layout | None:
    """Return what was noted at a node, None if nothing was."""
    layout: Layout | None = node.meta.get(_KEY) if isinstance(node, fx.Node) else None
    return layout


def is_captured(graph: fx.Graph) -> bool:
    """Return whether a captured run has noted layouts at a graph."""
    return any(map(is_noted, graph.nodes))


def is_noted(node: Any) -> bool:
    """Return whether a captured run has had the tensor of a node, known or not.

    What a training graph keeps for its backward half is none of the captured run's.
    """
    return isinstance(node, fx.Node) and _KEY in node.meta


def hand_on_layouts(pairs: Iterable[tuple[Any, fx.Node]]) -> None:
    """Note at nodes what was noted at others.

    Args:
        pairs: A node with what was noted, and the one that gets it.
    """
    for node, other in pairs:
        if isinstance(node, fx.Node) and _KEY in node.meta:
            other.meta[_KEY] = node.meta[_KEY]


def _order(stride: Sequence[int]) -> list[int]:
    """Return dimensions from outer to inner."""
    return sorted(range(len(stride)), key=lambda axis: -stride[axis])


def _dense_order(shape: Sequence[int], stride: Sequence[int]) -> list[int] | None:
    """Return dimensions from outer to inner if they fill memory, each of them."""
    order, expected = _order(stride), 1
    for axis in reversed(order):
        if stride[axis] != expected:
            return None
        expected *= max(shape[axis], 1)
    return order
