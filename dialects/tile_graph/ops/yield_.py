"""Owns tile_graph.yield."""

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation, read_by_position
from magweld.dialects.tile_graph.verification import (
    OPERATOR,
    SUBGRAPH,
    parent_violations,
    report,
)


@read_by_position
class YieldOp(
    Operation,
    name="yield",
    traits=[ir.IsTerminatorTrait, ext.Pure],
):
    """End a region of this dialect and give the results of its op.

    `"tile_graph.yield"(%v) : (tensor<4xf32>) -> ()`, with one or two values.
    """

    first: ext.Operand[Any]
    second: ext.Operand[Any] | None = None

    def verify_region_invariants(self) -> bool:
        """Check that the parent is an op of this dialect with a region."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from parent_violations(self, (OPERATOR, SUBGRAPH))
