"""The operations of tile_graph, one a file."""

from magweld.dialects.tile_graph.ops.connect import ConnectOp
from magweld.dialects.tile_graph.ops.operator import OperatorOp
from magweld.dialects.tile_graph.ops.subgraph import SubgraphOp

__all__ = ["ConnectOp", "OperatorOp", "SubgraphOp"]
