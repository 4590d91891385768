"""Owns the gradients that a program asks for inside of itself, as an operator.

Such a graph makes and uses autograd graphs, and need not have gradients itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from magweld.graphs.control_operators import all_nodes


def inner_gradients(*args: Any, **kwargs: Any) -> tuple[torch.Tensor | None, ...]:
    """Return what `torch.autograd.grad` returns."""
    found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(*args, **kwargs)
    return found


def switches_gradients(node: fx.Node) -> bool:
    """Return whether a node switches on or off that gradients are recorded."""
    return node.target is torch._C._set_grad_enabled


def makes_gradients_of_inputs(graph: fx.GraphModule) -> bool:
    """Return whether it makes gradients for tensors that it is given."""
    nodes = (node for node in all_nodes(graph) if node.target is inner_gradients)
    wanted = [node.kwargs.get("inputs", node.args[1:2]) for node in nodes]
    return any(
        isinstance(leaf, fx.Node) and leaf.op == "placeholder"
        for leaf in pytree.tree_leaves(wanted)
    )


def frees_history(node: fx.Node) -> bool:
    """Return whether a node makes gradients and nothing can make them once more."""
    keeps = ("create_graph", "retain_graph")
    is_kept = any(node.kwargs.get(name) is True for name in keeps)
    return node.target is inner_gradients and not is_kept


def has_inner_gradients(graph: fx.GraphModule) -> bool:
    """Return whether a graph, or one that it runs, makes gradients."""
    return any(node.target is inner_gradients for node in all_nodes(graph))
