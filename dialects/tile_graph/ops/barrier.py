"""Owns tile_graph.barrier."""

from magweld.dialects.tile_graph.dialect import Operation
from magweld.dialects.tile_graph.plan_verification import inside_violations
from magweld.dialects.tile_graph.verification import report


class BarrierOp(Operation, name="barrier"):
    """All units that work on a tile wait here until what each wrote is to be read.

    `"tile_graph.barrier"() : () -> ()`
    """

    def verify_region_invariants(self) -> bool:
        """Check that it stands in a plan."""
        return report(self, inside_violations(self))
