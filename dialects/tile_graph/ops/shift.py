"""Owns tile_graph.shift."""

from collections.abc import Iterator

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation
from magweld.dialects.tile_graph.verification import parent_violations, report


class ShiftOp(Operation, name="shift"):
    """A tensor from an element of it on: what is read at zero is at the offsets.

    It is the same memory, begun later, so its rows are as far apart as those of its
    operand. Readers that take equal parts of a tensor from different places are equal
    with it. What lies beyond the end of the operand has no value: who reads it takes
    slices that end before.

    `%1 = "tile_graph.shift"(%0) {offsets = [0, 64]}
        : (tensor<8x128xf32>) -> tensor<8x128xf32>`

    Attributes:
        offsets: For each dimension, where the element at zero is; within the extent,
            and not zero in all of them.
    """

    output: ext.Result[ir.RankedTensorType]
    input: ext.Operand[ir.RankedTensorType]
    offsets: ir.ArrayAttr

    def verify_region_invariants(self) -> bool:
        """Check the place, the types and the offsets."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from parent_violations(self, ("func.func",))
        type_ = self.input.type
        if type_ != self.output.type:
            yield (
                f"expected its result to have the type of its operand, {type_}, got "
                f"{self.output.type}"
            )
        if not type_.has_static_shape:
            yield f"expected a tensor of static extents, got {type_}"
        offsets = [ir.IntegerAttr(offset).value for offset in self.offsets]
        shape = list(type_.shape)
        inside = len(offsets) == len(shape) and all(
            0 <= offset < extent for offset, extent in zip(offsets, shape, strict=True)
        )
        if not inside or not any(offsets):
            yield (
                f"expected attribute 'offsets' to be of an element of {type_} behind "
                f"the first one, got {offsets}"
            )
