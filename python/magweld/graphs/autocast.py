"""Owns autocast that a program switches: its steps in a graph, putting it back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch
from torch import fx

Compiled = Callable[..., Sequence[torch.Tensor]]

_DEVICES: Final = ("cpu", "cuda")


def leave_autocast() -> int:
    """End a region as `torch.autocast` does, which drops the casts at the last end."""
    depth: int = torch.autocast_decrement_nesting()
    if depth == 0:
        torch.clear_autocast_cache()
    return depth


SWITCHES: Final = frozenset(
    {
        torch.set_autocast_enabled,
        torch.set_autocast_dtype,
        torch.set_autocast_cache_enabled,
        torch.autocast_increment_nesting,
        leave_autocast,
    }
)


def switches_autocast(graph: fx.Graph) -> bool:
    """Return whether a graph enters or leaves autocast."""
    return any(node.target in SWITCHES for node in graph.nodes)


def _depth() -> int:
    torch.autocast_increment_nesting()
    depth: int = torch.autocast_decrement_nesting()
    return depth


def _modes() -> tuple[Any, ...]:
    enabled = [torch.is_autocast_enabled(name) for name in _DEVICES]
    return (*enabled, *(torch.get_autocast_dtype(name) for name in _DEVICES))


def _set_modes(modes: tuple[Any, ...]) -> None:
    for index, name in enumerate(_DEVICES):
        torch.set_autocast_enabled(name, modes[index])
        torch.set_autocast_dtype(name, modes[index + len(_DEVICES)])


@contextlib.contextmanager
def autocast_as(modes: tuple[Any, ...]) -> Iterator[None]:
    """Have autocast as it was at another time.

    Args:
        modes: Whether it is on for each device, then the types that it casts to.
    """
    before = _modes()
    _set_modes(modes)
    try:
        yield
    finally:
        _set_modes(before)


@contextlib.contextmanager
def autocast_kept(always: bool = False) -> Iterator[None]:
    """Put autocast back where the block began when it raises.

    Args:
        always: Whether to put it back in any case.
    """
    depth, cached, modes = _depth(), torch.is_autocast_cache_enabled(), _modes()
    done = False
    try:
        yield
        done = True
    finally:
        if always or not done:
            while _depth() > depth:
                leave_autocast()
            torch.set_autocast_cache_enabled(cached)
            _set_modes(modes)


def graph_runner(module: fx.GraphModule) -> Compiled:
    """Return a graph as a callable that leaves no region open when it raises."""
    forward: Compiled = module.forward
    if not switches_autocast(module.graph):
        return forward

    def run(*inputs: Any) -> Any:
        with autocast_kept():
            return forward(*inputs)

    return run
