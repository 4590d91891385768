"""Owns tile_graph.load."""

from collections.abc import Iterator, Sequence

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation, read_by_position
from magweld.dialects.tile_graph.plan_verification import (
    inside_violations,
    place_violations,
    plan_around,
    region_violations_of,
)
from magweld.dialects.tile_graph.structure import type_bytes
from magweld.dialects.tile_graph.verification import integer_violations, report


@read_by_position
class LoadOp(Operation, name="load"):
    """A tile with the contents of a region of a tensor.

    `%0 = "tile_graph.load"(%x, %i) {offsets = affine_map<(d0) -> (d0 * 8, 0)>,
        sizes = [8, 64], place = #tile_graph.place<"l2", 0, 2048, 64>,
        moved = 2048, transactions = 32}
        : (tensor<64x64xf32>, index) -> tensor<8x64xf32>`

    Its operands are the tensor and the positions that the region depends on.

    Attributes:
        offsets: Where the region begins along each dimension of the tensor, from the
            positions.
        sizes: Of the region; the tile may leave out dimensions of size one.
        moved: Bytes that come from the outermost level in whole transactions, unless
            a level between holds them already.
        transactions: How many these are.
        place: Optional; where the tile lies until it is released. One that is smaller
            than the tile has it in steps, or what is looked up. Without one the tile
            goes through registers.
    """

    tile: ext.Result[ir.RankedTensorType]
    tensor: ext.Operand[ir.RankedTensorType]
    at: Sequence[ext.Operand[ir.IndexType]]
    offsets: ir.AffineMapAttr
    sizes: ir.ArrayAttr
    moved: ir.IntegerAttr
    transactions: ir.IntegerAttr

    def verify_region_invariants(self) -> bool:
        """Check the region, the place, and that the tensor is no tile."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from inside_violations(self)
        source, *positions = self.operation.operands
        tile = self.operation.results[0].type
        yield from region_violations_of(self, tile, source.type, len(positions))
        plan = plan_around(self)
        maker = None if isinstance(source, ir.BlockArgument) else source.owner
        around = None if maker is None else plan_around(maker)
        if around is not None and around == plan:
            yield "expected its tensor to come from outside of the plan"
        for name in ("moved", "transactions"):
            yield from integer_violations(self, name, 0)
        yield from place_violations(self, type_bytes(tile), exact=False)
