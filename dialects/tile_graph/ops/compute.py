"""Owns tile_graph.compute."""

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation, read_by_position
from magweld.dialects.tile_graph.plan_verification import (
    inside_violations,
    plan_around,
)
from magweld.dialects.tile_graph.structure import captured_values
from magweld.dialects.tile_graph.verification import (
    integer_violations,
    region_violations,
    report,
)

# Upstream clean-up may move them out of regions.
_WITHOUT_DATA = frozenset({"arith.constant", "linalg.fill", "tensor.empty"})


@read_by_position
class ComputeOp(Operation, name="compute"):
    """What an operator computes for one tile.

    It reads the tiles that its region uses from outside. A result lies where the
    operation in the region that makes it writes to: in an allocated tile, or in one
    that an earlier compute gave.

    Attributes:
        op_name: Name of the operator in reports; one operator may compute in several
            parts.
        reduction_block: Optional; how many iterations of its longest reduction are
            made before the next ones are begun. Sums wait in the result meanwhile.
    """

    first: ext.Result[Any]
    second: ext.Result[Any] | None
    op_name: ir.StringAttr
    body: ext.Region

    def verify_region_invariants(self) -> bool:
        """Check the block, and that what is read are tiles."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from inside_violations(self)
        yield from region_violations(self)
        yield from self._block_violations()
        plan = plan_around(self)
        for value in captured_values(self):
            if isinstance(value.type, ir.RankedTensorType) and not _is_tile(
                value, plan
            ):
                yield "expected what it reads to be tiles of its plan, got a tensor"

    def _block_violations(self) -> Iterator[str]:
        yield from integer_violations(self, "reduction_block", 1)
        if "reduction_block" not in self.operation.attributes:
            return
        *_, terminator = self.operation.regions[0].blocks[0].operations
        made = terminator.operands[0]
        inside = not isinstance(made, ir.BlockArgument)
        name = made.owner.operation.name if inside else "an argument"
        if not name.startswith("linalg."):
            yield f"expected a linalg operation to make what has blocks, got '{name}'"


def _is_tile(value: Any, plan: Any) -> bool:
    """Whether a tensor is made in a plan, or holds no data and can be made there."""
    is_argument = isinstance(value, ir.BlockArgument)
    maker = value.owner.owner.operation if is_argument else value.owner.operation
    around = plan_around(maker)
    is_inside = around is not None and around == plan
    return is_inside or (not is_argument and maker.name in _WITHOUT_DATA)
