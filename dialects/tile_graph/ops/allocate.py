"""Owns tile_graph.allocate."""

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation
from magweld.dialects.tile_graph.plan_verification import (
    inside_violations,
    place_violations,
)
from magweld.dialects.tile_graph.structure import type_bytes
from magweld.dialects.tile_graph.verification import report


class AllocateOp(Operation, name="allocate"):
    """A tile without contents, for something to compute into.

    `%0 = "tile_graph.allocate"() {place = #tile_graph.place<"l2", 0, 256, 64>}
        : () -> tensor<8x8xf32>`

    Attributes:
        place: Optional; where the tile lies until it is released. Without one it is
            kept in registers, or melts into what reads it.
    """

    tile: ext.Result[ir.RankedTensorType]

    def verify_region_invariants(self) -> bool:
        """Check that it stands in a plan, and its place."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from inside_violations(self)
        yield from place_violations(self, self._bytes())

    def _bytes(self) -> int:
        type_: Any = self.tile.type
        return type_bytes(type_)
