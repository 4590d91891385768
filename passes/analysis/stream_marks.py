"""Owns how a streamed dimension stands in the IR: `stream` of the connects it takes."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir
from magweld.passes.analysis.graph_body import GraphBody
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.stream import Blocks, Stream
from magweld.passes.tiling.streamed_loops import single_loop
from magweld.passes.tiling.streaming import streams

STEP = "stream_step"
MARK = "stream"


def mark_stream(
    body: GraphBody, members: list[int], group: Group, stream: Stream | None
) -> None:
    """Mark the edges between members over which blocks go, and no others.

    The mark is the dimension of what goes over the edge: over the same edges another
    one may be streamed as well.
    """
    chosen = {} if stream is None else _streamed(body, members, group, stream)
    number = ir.IntegerType.get_signless(64)
    for edge in body.edges:
        if edge.consumer not in members or edge.producer not in members:
            continue
        if edge.connect in chosen:
            dim = chosen[edge.connect]
            edge.connect.attributes[MARK] = ir.IntegerAttr.get(number, dim)
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
    connects = [edge.connect for edge in body.edges]
    marked = {c: c.attributes[MARK].value for c in connects if MARK in c.attributes}
    members = list(range(len(body.operators)))
    ways = streams(group)
    for way in ways:
        if isinstance(way, Stream):
            if marked == _streamed(body, members, group, way):
                return Blocks(way, step)
    refused = next((way for way in ways if isinstance(way, Refusal)), None)
    return refused or Refusal(
        "no-stream", "the marked edges are not all of a dimension"
    )


def _streamed(
    body: GraphBody, members: list[int], group: Group, stream: Stream
) -> dict[Any, int]:
    """Return the edges over which blocks go, each with the dimension."""
    found: dict[Any, int] = {}
    position = {member: node for node, member in enumerate(members)}
    for edge in body.edges:
        if edge.consumer in position and edge.producer in position:
            producer = position[edge.producer]
            if stream.is_block(group, producer):
                (write,) = group.nodes[producer].writes
                loops = [single_loop(expr) for expr in write.index]
                found[edge.connect] = loops.index(stream.loops[producer])
    return found
