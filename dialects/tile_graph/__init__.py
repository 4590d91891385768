"""The tile_graph dialect: operators as tiles and the memory levels between them."""

from magweld.dialects.tile_graph.attributes import (
    DeviceAttr,
    LevelAttr,
    TileAttr,
    tile_attribute,
)
from magweld.dialects.tile_graph.builders import (
    build_connect,
    build_graph,
    build_operator,
    build_subgraph,
    yield_values,
)
from magweld.dialects.tile_graph.dialect import TileGraphDialect
from magweld.dialects.tile_graph.ops import (
    ConnectOp,
    GraphOp,
    OperatorOp,
    SubgraphOp,
    YieldOp,
)
from magweld.dialects.tile_graph.structure import parallel_extents, root_operation
from magweld.dialects.tile_graph.view import (
    connected_value,
    connects_of,
    consumers_of,
    device_of,
    operators_of,
    subgraphs_of,
)

__all__ = [
    "ConnectOp",
    "DeviceAttr",
    "GraphOp",
    "LevelAttr",
    "OperatorOp",
    "SubgraphOp",
    "TileAttr",
    "TileGraphDialect",
    "YieldOp",
    "build_connect",
    "build_graph",
    "build_operator",
    "build_subgraph",
    "connected_value",
    "connects_of",
    "consumers_of",
    "device_of",
    "operators_of",
    "parallel_extents",
    "root_operation",
    "subgraphs_of",
    "tile_attribute",
    "yield_values",
]
