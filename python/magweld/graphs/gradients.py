"""Owns the gradients that a program asks for inside of itself, as an operator.

Such a graph makes and uses autograd graphs, and need not have gradients itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from magweld.graphs.control_operators import all_nodes


def inner_gradients(*args: Any, **kwargs: Any) -> tuple[torch.Tensor | None, ...]:
    """Return what `torch.autograd.grad` returns."""
    found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(*args, **kwargs)
    return found


def frees_history(node: fx.Node) -> bool:
    """Return whether a node makes gradients and nothing can make them once more."""
    keeps = ("create_graph", "retain_graph")
    is_kept = any(node.kwargs.get(name) is True for name in keeps)
    return node.target is inner_gradients and not is_kept


def has_inner_gradients(graph: fx.GraphModule) -> bool:
    """Return whether a graph, or one that it runs, makes gradients."""
    return any(node.target is inner_gradients for node in all_nodes(graph))
