"""Owns the body of a kernel: one forall whose tiles compute all operators in order."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir, scf
from magweld.dialects.tile_graph import TileAttr
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.propagation import Group, Refusal, propagate
from magweld.passes.analysis.regions import Clamps
from magweld.passes.analysis.stream_marks import marked_blocks
from magweld.passes.graph.stream_body import emit_stream
from magweld.passes.graph.tile_emitter import TileEmitter
from magweld.passes.graph.tile_slices import TileSlicer
from magweld.passes.ir_utils import located_error


def build_tiled_body(
    subgraph: Any, inputs: dict[Any, Any], destinations: list[Any]
) -> list[Any]:
    """Build the loop over tiles at the insertion point and return its results.

    Args:
        subgraph: A `tile_graph.subgraph` with a `tile`.
        inputs: What stands for each tensor that the subgraph reads.
        destinations: One tensor a result, overwritten completely.

    Raises:
        PassError: There is no tile, or it does not fit the operators.
    """
    if "tile" not in subgraph.attributes:
        raise located_error(subgraph, "expected attribute 'tile', see select-tiles")
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    tile = TileAttr(subgraph.attributes["tile"]).sizes
    blocks = marked_blocks(subgraph, body, group)
    if isinstance(blocks, Refusal):
        raise located_error(subgraph, f"{blocks.rule}: {blocks.detail}")
    tiles = propagate(group, tile, blocks)
    if isinstance(tiles, Refusal):
        raise located_error(subgraph, f"{tiles.rule}: {tiles.detail}")
    loops, forall = _loop_over_tiles(group, tile, destinations)
    arguments = list(forall.body.arguments)
    count = len(arguments) - len(destinations)
    # Loops that are not split have no variable; the forall has one all the same.
    ivs = dict(zip(loops, arguments[:count], strict=False))
    clamps = Clamps(len(group.root.extents), tiles.clamps)
    slicer = TileSlicer(ivs, clamps)
    with ir.InsertionPoint(forall.body):
        *_, terminator = subgraph.regions[0].blocks[0].operations
        results = list(terminator.operands)
        emitter = TileEmitter(body, inputs, results, arguments[count:], slicer)
        if blocks is None:
            for number, box in enumerate(tiles.boxes):
                emitter.emit(number, box)
        else:
            emit_stream(emitter, slicer, group, tile, blocks)
        parallel = scf.InParallelOp()
    with ir.InsertionPoint(parallel.region.blocks[0]):
        emitter.insert_results()
    return list(forall.results)


def _loop_over_tiles(
    group: Group, tile: tuple[int, ...], destinations: list[Any]
) -> tuple[list[int], Any]:
    """Make the forall; return the loops of the root that it splits, and itself."""
    sizes = dict(zip(group.root.parallel, tile, strict=True))
    loops = [loop for loop in sizes if sizes[loop] < group.root.extents[loop]]
    # A kernel of one tile is a loop over tiles as well.
    bounds = [(group.root.extents[i], sizes[i]) for i in loops] or [(1, 1)]
    lower, upper = [0] * len(bounds), [extent for extent, _ in bounds]
    return loops, scf.ForallOp(lower, upper, [step for _, step in bounds], destinations)
