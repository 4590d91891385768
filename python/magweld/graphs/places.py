"""Owns where in the user's files the nodes of captured graphs come from."""

from __future__ import annotations

from torch import fx


def place_of(node: fx.Node) -> str:
    """Return the innermost "file:line" that recorded a node, "" for none."""
    trace = node.meta.get("stack_trace") or ""
    for frame in trace.splitlines()[-1:]:
        file, _, line = frame.removeprefix('File "').rpartition('", line ')
        return f"{file}:{line}"
    return ""
