"""Owns tile_graph.operator."""

from collections.abc import Iterator, Sequence
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import TileGraphDialect
from magweld.dialects.tile_graph.structure import (
    is_allowed_in_operator,
    root_candidates,
)
from magweld.dialects.tile_graph.verification import (
    GRAPH,
    SUBGRAPH,
    parent_violations,
    region_violations,
    report,
)


class OperatorOp(
    TileGraphDialect.Operation,
    name="operator",
    traits=[ir.IsIsolatedFromAboveTrait, ext.Pure],
):
    """A node of the graph: one root operation on tensors and what prepares it.

    The root is a linalg operation, or a tensor operation that moves elements.
    linalg.fill and tensor.pad belong to the root; where there is no other candidate
    one of them is the root. Constants, tensor.empty and reshapes may stand beside.

    Attributes:
        op_name: Name of the operator in reports.
    """

    outputs: Sequence[ext.Result[Any]]
    inputs: Sequence[ext.Operand[Any]]
    op_name: ir.StringAttr
    body: ext.Region

    def verify_region_invariants(self) -> bool:
        """Check the place, the block and that there is exactly one root."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from parent_violations(self, (GRAPH, SUBGRAPH))
        yield from region_violations(self)
        block = self.operation.regions[0].blocks[0]
        for nested in block.operations:
            name = nested.operation.name
            if not is_allowed_in_operator(name):
                yield (
                    f"expected its body to hold a linalg operation or a move of "
                    f"elements, and constants, fills, pads and views, got '{name}'"
                )
        roots = [root.name for root in root_candidates(block)]
        if len(roots) != 1:
            found = f" ({', '.join(roots)})" if roots else ""
            yield f"expected one root operation, got {len(roots)}{found}"
