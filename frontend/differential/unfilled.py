"""Owns finding tensors of a graph whose memory nothing has been written to."""

from __future__ import annotations

from typing import Final

from torch import fx

from magweld.frontend.control.operators import all_nodes
from magweld.frontend.operators.kinds import RESIZES, name_of

_EMPTY: Final = RESIZES | {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}


def leaves_unfilled(graph: fx.GraphModule) -> bool:
    """Return whether a graph has such a tensor: its values are any, also in eager."""
    return any(_is_empty(node) and not _is_filled(node) for node in all_nodes(graph))


def _is_empty(node: fx.Node) -> bool:
    target = node.target
    name = target if isinstance(target, str) else name_of(target)
    return node.op.startswith("call") and name in _EMPTY


def _is_filled(node: fx.Node) -> bool:
    """Return whether something is written to a tensor, or to what is made of it."""
    waiting, seen = [node], {node}
    while waiting:
        for user in waiting.pop().users.keys() - seen:
            if user.meta.get("writes"):
                return True
            seen.add(user)
            waiting.append(user)
    return False
