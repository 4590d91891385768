"""Owns the walk over the graph that autograd keeps behind tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch
from torch import Tensor
from torch.autograd.graph import Node

from magweld.frontend.operators.history import gradient_node

Edge = tuple[Node, int]
"""Where the gradient of a tensor arrives: a node, and which of its results it is."""


def edge_of(tensor: Tensor) -> Edge | None:
    """Return where the gradient of a tensor arrives, None if it is made of no other."""
    node = tensor.grad_fn
    return None if node is None else (node, tensor.output_nr)


def end_at(tensor: Tensor) -> Node:
    """Return the node at which a gradient of a tensor has arrived; leaves have one too.

    Raises:
        RuntimeError: As of `gradient_node`, or no gradient ever arrives: at tensors of
            inference, and at views that were made without gradients.
    """
    return gradient_node(tensor) or _end_at_leaf(tensor)


def _end_at_leaf(leaf: Tensor) -> Node:
    # `get_gradient_edge` fails where the program infers, and for what has no end.
    with torch.inference_mode(False), torch.enable_grad():
        user = leaf.view_as(leaf).grad_fn
    end = None if user is None else user.next_functions[0][0]
    if end is None:
        raise RuntimeError("a tensor at which no gradient arrives")
    return end


def is_plain_leaf(tensor: Tensor) -> bool:
    """Return whether a tensor is made of no other, and no hook sees its gradients."""
    hooks = tensor._backward_hooks or tensor._post_accumulate_grad_hooks
    return tensor.is_leaf and not hooks


def nodes_behind(tensors: Iterable[Tensor], stop: Collection[Node] = ()) -> set[Node]:
    """Return the nodes that a backward from tensors runs.

    Args:
        tensors: Where it begins.
        stop: Nodes that are left out, with those that are reached through them alone.
    """
    work = [tensor.grad_fn for tensor in tensors]
    found: set[Node] = set()
    while work:
        node = work.pop()
        if node is not None and node not in found and node not in stop:
            found.add(node)
            work += [source for source, _ in node.next_functions]
    return found


def edges_behind(tensors: Iterable[Tensor]) -> set[Edge]:
    """Return where gradients go that a backward from tensors makes.

    The tensors' own edges are among them where another of the tensors follows from one.
    """
    return {
        (source, number)
        for node in nodes_behind(tensors)
        for source, number in node.next_functions
        if source is not None
    }
