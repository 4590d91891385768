"""Owns finding the IR of single subgraphs in the text of a module."""

from __future__ import annotations

import re

_STEP = re.compile(r'^(?P<indent> *)%\S+ = "tile_graph\.(?P<op>\w+)"\(\) \(\{$')
_NAME = re.compile(r'subgraph_name = "(?P<name>[^"]*)"')
_PIECE = re.compile(r"^// piece \d+$", re.MULTILINE)


def piece_texts(text: str) -> list[str]:
    """Return the modules in the text of a graph that was compiled in pieces."""
    pieces = _PIECE.split(text)
    return pieces[1:] if len(pieces) > 1 else pieces


def subgraph_texts(module: str, op: str = "subgraph") -> dict[str, str]:
    """Return the text of each subgraph in the text of a module, by name.

    Args:
        module: The text.
        op: "subgraph", or "for_tiles" for their plans.
    """
    found: dict[str, str] = {}
    lines = module.splitlines()
    for start, line in enumerate(lines):
        match = _STEP.match(line)
        if match is None or match["op"] != op:
            continue
        indent = match["indent"]
        closing = f"{indent}}}) {{"
        ends = (n for n in range(start, len(lines)) if lines[n].startswith(closing))
        end = next(ends, len(lines) - 1)
        name = _NAME.search(lines[end])
        if name is not None:
            own = (text.removeprefix(indent) for text in lines[start : end + 1])
            found[name["name"]] = "\n".join(own)
    return found
