"""Owns tile_graph.allocate."""

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation
from magweld.dialects.tile_graph.plan_verification import (
    inside_violations,
    place_violations,
)
from magweld.dialects.tile_graph.roles import Role
from magweld.dialects.tile_graph.structure import type_bytes
from magweld.dialects.tile_graph.verification import report


class AllocateOp(Operation, name="allocate"):
    """A tile without contents, for something to compute into.

    `%0 = "tile_graph.allocate"() {place = #tile_graph.place<"l2", 0, 256, 64>}
        : () -> tensor<8x8xf32>`

    Attributes:
        place: Optional; where the tile lies until it is released. Without one it is
            kept in registers, or computed by its reader, element by element.
        role: Optional; what it is for, if it is no plain tile: a `window` with a border
            around it, or what the next computation has beside its tiles. This may lie
            in a level further out.
        lasting: Optional; a window keeps its border from tile to tile: no other tile
            lies in its place.
    """

    tile: ext.Result[ir.RankedTensorType]

    def verify_region_invariants(self) -> bool:
        """Check that it stands in a plan, and its place."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from inside_violations(self)
        yield from place_violations(self, self._bytes())
        yield from self._role_violations()

    def _role_violations(self) -> Iterator[str]:
        attributes = self.operation.attributes
        known = [role.value for role in Role]
        role = attributes["role"] if "role" in attributes else None
        value = role.value if isinstance(role, ir.StringAttr) else None
        if role is not None and value not in known:
            yield f"expected attribute 'role' to be one of {known}, got {role}"
        is_window = value == Role.WINDOW.value
        if "lasting" in attributes and not (is_window and "place" in attributes):
            yield "expected a window with a place to have attribute 'lasting'"

    def _bytes(self) -> int:
        type_: Any = self.tile.type
        return type_bytes(type_)
