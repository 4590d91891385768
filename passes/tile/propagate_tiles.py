"""Owns propagate-tiles: the tile of every operator of a subgraph, from its root's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    TileAttr,
    is_tile_graph,
    subgraphs_of,
    tile_attribute,
)
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.library_calls import is_joint_call
from magweld.passes.analysis.stream_marks import marked_blocks
from magweld.passes.analysis.structure import annotate_equal
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.utils import located_error
from magweld.passes.tiling.propagation import Refusal, propagate


@dataclass(frozen=True)
class PropagateTiles(FunctionPass):
    """Write the tile that every operator computes for one tile of its subgraph.

    Welder's Propagate: backwards along the edges, regions exact for every position
    of the tile. An operator gets `tile`, the sizes along its own parallel loops; a
    subgraph gets `recompute`, arithmetic done over arithmetic needed. A tile that no
    producer can follow is an error.
    """

    name: ClassVar[str] = "propagate-tiles"

    def run_on_function(self, function: Any) -> None:
        """Annotate the operators in the subgraphs of `function`."""
        if not is_tile_graph(function):
            return
        tiled = (one for one in subgraphs_of(function) if not is_joint_call(one))
        annotate_equal(tiled, _annotate)


def _annotate(subgraph: Any) -> None:
    if "tile" not in subgraph.attributes:
        raise located_error(subgraph, "expected attribute 'tile', see select-tiles")
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    blocks = marked_blocks(subgraph, body, group)
    if isinstance(blocks, Refusal):
        raise located_error(subgraph, f"{blocks.rule}: {blocks.detail}")
    tiles = propagate(group, TileAttr(subgraph.attributes["tile"]).sizes, blocks)
    if isinstance(tiles, Refusal):
        raise located_error(subgraph, f"{tiles.rule}: {tiles.detail}")
    for operator, model, box in zip(
        body.operators, body.models, tiles.boxes, strict=True
    ):
        operator.attributes["tile"] = tile_attribute(model.tile_of(box))
    subgraph.attributes["recompute"] = ir.FloatAttr.get_f64(tiles.recompute)
