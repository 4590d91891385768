"""Owns how a streamed dimension stands in the IR: connects marked `stream`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ir
from magweld.passes.analysis.graph_body import GraphBody
from magweld.passes.analysis.group import Group
from magweld.passes.analysis.propagation import Blocks, Refusal
from magweld.passes.analysis.stream import Stream
from magweld.passes.analysis.streaming import streams

STEP = "stream_step"
MARK = "stream"


def mark_stream(
    body: GraphBody, members: list[int], group: Group, stream: Stream | None
) -> None:
    """Mark the edges between members over which blocks go, and no others."""
    chosen = [] if stream is None else list(_streamed(body, members, group, stream))
    for edge in body.edges:
        if edge.consumer not in members or edge.producer not in members:
            continue
        if edge.connect in chosen:
            edge.connect.attributes[MARK] = ir.UnitAttr.get()
        elif MARK in edge.connect.attributes:
            del edge.connect.attributes[MARK]


def decided_step(op: Any) -> int | None:
    """Return the size of the blocks that was chosen for a subgraph or its root."""
    return ir.IntegerAttr(op.attributes[STEP]).value if STEP in op.attributes else None


def marked_blocks(
    subgraph: Any, body: GraphBody, group: Group
) -> Blocks | Refusal | None:
    """Return the streamed dimension that the edges of a subgraph are marked for."""
    step = decided_step(subgraph)
    if step is None:
        return None
    marked = {e.connect for e in body.edges if MARK in e.connect.attributes}
    members = list(range(len(body.operators)))
    ways = streams(group)
    for way in ways:
        if isinstance(way, Stream):
            if marked == set(_streamed(body, members, group, way)):
                return Blocks(way, step)
    refused = next((way for way in ways if isinstance(way, Refusal)), None)
    return refused or Refusal("no-stream", "no dimension goes over the marked edges")


def _streamed(
    body: GraphBody, members: list[int], group: Group, stream: Stream
) -> Iterator[Any]:
    position = {member: node for node, member in enumerate(members)}
    for edge in body.edges:
        if edge.consumer in position and edge.producer in position:
            if stream.is_block(group, position[edge.producer]):
                yield edge.connect
