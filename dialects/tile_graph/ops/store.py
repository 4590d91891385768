"""Owns tile_graph.store."""

from collections.abc import Iterator, Sequence

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation, read_by_position
from magweld.dialects.tile_graph.plan import ALLOCATE
from magweld.dialects.tile_graph.plan_verification import (
    inside_violations,
    plan_around,
    region_violations_of,
)
from magweld.dialects.tile_graph.verification import integer_violations, report


@read_by_position
class StoreOp(Operation, name="store"):
    """A tile becomes a region of a result of the plan.

    `"tile_graph.store"(%tile, %into, %i) {offsets = affine_map<(d0) -> (d0 * 8, 0)>,
        sizes = [8, 64], result = 0, moved = 2048, transactions = 32}
        : (tensor<8x64xf32>, tensor<8x64xf32>, index) -> ()`

    Its operands are the tile, the allocation that it was computed into, and the
    positions that the region depends on. A cache has the allocation as lines of the
    result, so that nothing is copied there, unless the plan stores the result past the
    caches.

    Attributes:
        result: Number of the result.
        offsets: Where the region begins along each dimension of the result.
        sizes: Of the region.
        moved: Bytes that go to the outermost level in whole transactions.
        transactions: How many these are.
    """

    tile: ext.Operand[ir.RankedTensorType]
    into: ext.Operand[ir.RankedTensorType]
    at: Sequence[ext.Operand[ir.IndexType]]
    result: ir.IntegerAttr
    offsets: ir.AffineMapAttr
    sizes: ir.ArrayAttr
    moved: ir.IntegerAttr
    transactions: ir.IntegerAttr

    def verify_region_invariants(self) -> bool:
        """Check the result, the region and the allocation."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from inside_violations(self)
        tile, into, *positions = self.operation.operands
        maker = None if isinstance(into, ir.BlockArgument) else into.owner.operation
        if maker is None or maker.name != ALLOCATE or into.type != tile.type:
            yield f"expected its second operand to be a '{ALLOCATE}' of {tile.type}"
        plan = plan_around(self)
        assert plan is not None, "it stands in one"
        number = self.result.value
        if not 0 <= number < len(plan.results):
            yield f"expected the number of a result of its plan, got {number}"
            return
        result = plan.results[number].type
        yield from region_violations_of(self, tile.type, result, len(positions))
        for name in ("moved", "transactions"):
            yield from integer_violations(self, name, 0)
