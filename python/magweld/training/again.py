"""Owns a further backward through a call whose kept tensors were freed by another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

# Autograd tells of it by text alone.
FREED = "backward through the graph a second time"
_RAW = "_raw_saved_"


def is_freed(error: RuntimeError) -> bool:
    """Return whether kept tensors are gone because a backward has run."""
    return FREED in str(error)


def check_not_shared(
    results: Sequence[Tensor], before: Iterable[int], now: Sequence[int]
) -> None:
    """Raise if a backward from some results needs what one from others has freed.

    Args:
        results: Results of the graph, run through torch.
        before: Positions of the results that a backward has begun from already.
        now: Positions of those that it begins from now.

    Raises:
        RuntimeError: Eager torch would have freed an operator that keeps tensors.
    """
    freed = _reached(results[number] for number in before)
    for node in _reached(results[number] for number in now):
        if node in freed and any(name.startswith(_RAW) for name in dir(node)):
            raise RuntimeError(
                f"Trying to {FREED}: specify retain_graph=True if you need to"
                " differentiate a traced call more than once"
            )


def _reached(results: Iterable[Tensor]) -> set[Any]:
    work = [result.grad_fn for result in results if result.grad_fn is not None]
    found: set[torch.autograd.graph.Node] = set()
    while work:
        node = work.pop()
        if node not in found:
            found.add(node)
            work += [source for source, _ in node.next_functions if source is not None]
    return found
