"""Owns tile_graph.operator."""

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation, read_by_position
from magweld.dialects.tile_graph.structure import (
    captured_values,
    is_allowed_in_operator,
    parallel_extents,
    root_candidates,
)
from magweld.dialects.tile_graph.verification import (
    OPERATOR,
    SUBGRAPH,
    implementation_violations,
    parent_violations,
    region_violations,
    report,
    tile_violations,
)


@read_by_position
class OperatorOp(Operation, name="operator"):
    """A node of the graph: one root operation on tensors and what prepares it.

    The root is a linalg operation, or a tensor operation that moves elements.
    linalg.fill and tensor.pad belong to the root; where there is no other candidate
    one of them is the root. Constants, tensor.empty and reshapes may stand beside.

    What it reads are the values that its region uses from outside: function
    arguments, reshapes, constants, results of calls, and connects. What another
    operator made comes through a connect, which is the edge between the two.

    Attributes:
        op_name: Name of the operator in reports.
        implementation: Optional; "generated" code or a "library" call.
        tile: Optional `#tile_graph.tile`: what it computes for one tile of its
            subgraph, along its own parallel dimensions.
        unit: Optional; number of the unit of tuning that it belongs to.
    """

    first: ext.Result[Any]
    second: ext.Result[Any] | None
    op_name: ir.StringAttr
    body: ext.Region

    def verify_region_invariants(self) -> bool:
        """Check the place, the block, the edges and that there is exactly one root."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from parent_violations(self, ("func.func", SUBGRAPH))
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
        yield from self._edge_violations()
        yield from implementation_violations(self)
        yield from self._tile_violations(block)

    def _edge_violations(self) -> Iterator[str]:
        for value in captured_values(self):
            producer = None if isinstance(value, ir.BlockArgument) else value.owner
            if producer is not None and producer.operation.name in (OPERATOR, SUBGRAPH):
                yield (
                    f"expected what it reads of '{producer.operation.name}' to come "
                    f"through 'tile_graph.connect'"
                )

    def _tile_violations(self, block: ir.Block) -> Iterator[str]:
        attributes = self.operation.attributes
        if "tile" not in attributes:
            return
        root = root_candidates(block)[0]
        yield from tile_violations(attributes["tile"], parallel_extents(root))
