"""The operations of tile_graph, one a file."""

from magweld.dialects.tile_graph.ops.allocate import AllocateOp
from magweld.dialects.tile_graph.ops.barrier import BarrierOp
from magweld.dialects.tile_graph.ops.compute import ComputeOp
from magweld.dialects.tile_graph.ops.connect import ConnectOp
from magweld.dialects.tile_graph.ops.for_tiles import ForTilesOp
from magweld.dialects.tile_graph.ops.load import LoadOp
from magweld.dialects.tile_graph.ops.operator import OperatorOp
from magweld.dialects.tile_graph.ops.release import ReleaseOp
from magweld.dialects.tile_graph.ops.shift import ShiftOp
from magweld.dialects.tile_graph.ops.store import StoreOp
from magweld.dialects.tile_graph.ops.subgraph import SubgraphOp

__all__ = [
    "AllocateOp",
    "BarrierOp",
    "ComputeOp",
    "ConnectOp",
    "ForTilesOp",
    "LoadOp",
    "OperatorOp",
    "ReleaseOp",
    "ShiftOp",
    "StoreOp",
    "SubgraphOp",
]
