"""Owns what calls do with the tensors that they get: gradients, and writes to them."""

from __future__ import annotations

from typing import Any

import torch

from magweld.frontend.differential.check import run


def tensors_of(result: Any) -> list[torch.Tensor]:
    """Return a result and its items that are tensors."""
    items = result if isinstance(result, (tuple, list)) else [result]
    return [item for item in items if isinstance(item, torch.Tensor)]


def differentiate(result: Any, exact: bool) -> None:
    """Run backward from the tensors of a result; the gradients are state.

    Args:
        exact: Whether the graph behind them has the nodes that eager has. A backward
            that raises leaves the gradients of the nodes before: of others otherwise.
    """
    for item in tensors_of(result):
        if not item.requires_grad:
            continue
        before = [] if exact else gradients_behind(item)
        if run(lambda item=item: item.sum().backward()).error is not None:
            for leaf, gradient, values in before:
                leaf.grad = gradient
                if gradient is not None:
                    gradient.data.copy_(values)


def gradients_behind(result: torch.Tensor) -> list[tuple[torch.Tensor, Any, Any]]:
    """Return the leaves that a tensor has its gradient from, and what they have."""
    # Torch refuses it for some views that were written without gradients.
    begin = run(lambda: result.grad_fn).result
    waiting, seen, found = [begin], set(), []
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting += [follows for follows, _ in node.next_functions]
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor):
            gradient = leaf.grad
            values = None if gradient is None else gradient.detach().clone()
            found.append((leaf, gradient, values))
    return found


def overwrite(result: Any) -> list[bool]:
    """Write to the tensors of a result; return which of them torch lets be written."""
    return [run(lambda x=x: x.mul_(2)).error is None for x in tensors_of(result)]
