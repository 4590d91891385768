"""The tile_graph dialect: operators as tiles and the memory levels between them."""

from magweld.dialects.tile_graph.attributes import (
    DeviceAttr,
    InstructionAttr,
    LevelAttr,
    PeakAttr,
    TileAttr,
    tile_attribute,
)
from magweld.dialects.tile_graph.builders import (
    MOST_RESULTS,
    build_connect,
    build_operator,
    build_subgraph,
    yield_values,
)
from magweld.dialects.tile_graph.dialect import TileGraphDialect
from magweld.dialects.tile_graph.ops import (
    ConnectOp,
    OperatorOp,
    SubgraphOp,
)
from magweld.dialects.tile_graph.structure import (
    captured_values,
    parallel_extents,
    root_operation,
)
from magweld.dialects.tile_graph.verification import DEVICE
from magweld.dialects.tile_graph.view import (
    device_of,
    is_tile_graph,
    operators_of,
    subgraphs_of,
)

__all__ = [
    "DEVICE",
    "MOST_RESULTS",
    "ConnectOp",
    "DeviceAttr",
    "InstructionAttr",
    "LevelAttr",
    "OperatorOp",
    "PeakAttr",
    "SubgraphOp",
    "TileAttr",
    "TileGraphDialect",
    "build_connect",
    "build_operator",
    "build_subgraph",
    "captured_values",
    "device_of",
    "is_tile_graph",
    "operators_of",
    "parallel_extents",
    "root_operation",
    "subgraphs_of",
    "tile_attribute",
    "yield_values",
]
