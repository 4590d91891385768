"""Owns a further backward through a call whose kept tensors were freed by another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from torch import Tensor
from torch.autograd.graph import Node

from magweld.frontend.operators.edges import nodes_behind

# Autograd tells of it by text alone.
FREED = "backward through the graph a second time"
_RAW = "_raw_saved_"


def is_freed(error: RuntimeError) -> bool:
    """Return whether kept tensors are gone because a backward has run."""
    return FREED in str(error)


def check_not_shared(
    results: Sequence[Tensor],
    before: Iterable[int],
    now: Iterable[int],
    outside: Collection[Node],
) -> None:
    """Raise if a backward from some results needs what one from others has freed.

    Args:
        results: Results of the graph, run through torch.
        before: Positions of the results that a backward has begun from already.
        now: Positions of those that it begins from now.
        outside: Nodes in front of the graph, which raise by themselves.

    Raises:
        RuntimeError: Eager torch would have freed an operator that keeps tensors.
    """
    freed = nodes_behind((results[number] for number in before), outside)
    for node in nodes_behind((results[number] for number in now), outside):
        if node in freed and any(name.startswith(_RAW) for name in dir(node)):
            raise RuntimeError(
                f"Trying to {FREED}: specify retain_graph=True if you need to"
                " differentiate a traced call more than once"
            )
