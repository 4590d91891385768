"""Owns tile_graph.yield."""

from collections.abc import Iterator, Sequence
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import TileGraphDialect
from magweld.dialects.tile_graph.verification import (
    GRAPH,
    OPERATOR,
    SUBGRAPH,
    parent_violations,
    report,
)


class YieldOp(
    TileGraphDialect.Operation,
    name="yield",
    traits=[ir.IsTerminatorTrait, ext.Pure],
):
    """End a region of this dialect and give the results of its op.

    `"tile_graph.yield"(%v) : (tensor<4xf32>) -> ()`
    """

    values: Sequence[ext.Operand[Any]]

    def verify_region_invariants(self) -> bool:
        """Check that the parent is an op of this dialect with a region."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from parent_violations(self, (GRAPH, OPERATOR, SUBGRAPH))
