"""Owns the drawing of edges beside a list: every tensor gets a lane while it is needed.

Rows are steps in the order of their running, so edges lead downwards. A tensor's lane
begins at the row that makes it and ends at the last row that reads it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count


class Part(StrEnum):
    """What a lane does at a row."""

    START = "start"  # the row makes the tensor
    PASS = "pass"
    TAP = "tap"  # the row reads the tensor, and a later one too
    END = "end"  # the row is the last one that reads it


@dataclass(frozen=True)
class Edge:
    """A tensor on its way from one row to a later one.

    Attributes:
        source: Row that makes it.
        target: Row that reads it.
        tensor: Equal for edges of one tensor.
        style: How it is drawn.
        label: What it is, for people.
    """

    source: int
    target: int
    tensor: Hashable
    style: str
    label: str


@dataclass(frozen=True)
class Rail:
    """A piece of a lane beside one row.

    Attributes:
        lane: Number of the lane, 0 next to the rows.
        part: What it does there.
        style: How it is drawn.
        label: What it is, for people.
    """

    lane: int
    part: Part
    style: str
    label: str


def lay_out(rows: int, edges: Sequence[Edge]) -> list[list[Rail]]:
    """Return the rails beside each row.

    Short lives come next to the rows; no two lives share a lane at a row.
    """
    lives: dict[Hashable, list[Edge]] = {}
    for edge in edges:
        lives.setdefault((edge.source, edge.tensor), []).append(edge)
    rails: list[list[Rail]] = [[] for _ in range(rows)]
    taken: list[set[int]] = [set() for _ in range(rows)]
    for life in sorted(lives.values(), key=_length_and_place):
        readers = {edge.target: edge for edge in life}
        span = range(life[0].source, max(readers) + 1)
        used = set().union(*(taken[row] for row in span))
        lane = next(n for n in count() if n not in used)
        for row in span:
            taken[row].add(lane)
            edge, part = readers.get(row, life[-1]), _part(row, span, readers)
            rails[row].append(Rail(lane, part, edge.style, edge.label))
    return rails


def _length_and_place(life: list[Edge]) -> tuple[int, int]:
    first = life[0].source
    return max(edge.target for edge in life) - first, first


def _part(row: int, span: range, readers: dict[int, Edge]) -> Part:
    if row == span[0]:
        return Part.START
    if row == span[-1]:
        return Part.END
    return Part.TAP if row in readers else Part.PASS
