"""Owns tile_graph.release."""

from collections.abc import Iterator

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation
from magweld.dialects.tile_graph.plan import holder, place_of
from magweld.dialects.tile_graph.plan_verification import inside_violations
from magweld.dialects.tile_graph.verification import report


class ReleaseOp(Operation, name="release"):
    """The place of a tile is free from here on: `"tile_graph.release"(%0)`."""

    tile: ext.Operand[ir.RankedTensorType]

    def verify_region_invariants(self) -> bool:
        """Check that there is a place to be free."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from inside_violations(self)
        maker = holder(self.tile)
        is_maker = maker is not None and self.tile.owner == maker
        if maker is None or not is_maker or place_of(maker) is None:
            yield "expected an allocated or loaded tile with a place"
