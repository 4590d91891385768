"""Owns tile_graph.connect."""

from collections.abc import Iterator

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation
from magweld.dialects.tile_graph.structure import VIEWS
from magweld.dialects.tile_graph.verification import (
    FOR_TILES,
    OPERATOR,
    SUBGRAPH,
    found_level,
    parent_violations,
    quoted,
    report,
)
from magweld.targets.device import Device

_PRODUCERS = (OPERATOR, SUBGRAPH, FOR_TILES, "func.call", *sorted(VIEWS))


class ConnectOp(Operation, name="connect"):
    """An edge of the graph and the memory level that its value lives at.

    It leads to one operation: an operator or subgraph whose region reads it.

    The level decides how the consumer's tile reaches its operand: at the outermost
    level the whole tensor is stored and read again, below it a reuse tile is kept.
    Edges are not pure: two edges from one producer stay two.

    `%1 = "tile_graph.connect"(%0) {level = "l2"} : (tensor<4xf32>) -> tensor<4xf32>`

    Attributes:
        level: Name of a level of the enclosing function's device; below the outermost
            level only inside a subgraph of that level or of one outside of it.
        stream: Optional; the dimension of what goes over the edge of which one block
            exists at a time, so it lives below the outermost level.
        refused: Optional; the rule that keeps the edge at the outermost level, and
            its numbers.
    """

    output: ext.Result[ir.RankedTensorType]
    input: ext.Operand[ir.RankedTensorType]
    level: ir.StringAttr

    def verify_region_invariants(self) -> bool:
        """Check the place, the types, the producer and the level."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from parent_violations(self, ("func.func", SUBGRAPH))
        if self.input.type != self.output.type:
            yield (
                f"expected its result to have the type of its operand, "
                f"{self.input.type}, got {self.output.type}"
            )
        yield from self._producer_violations()
        yield from self._reader_violations()
        device = yield from found_level(self, self.level.value)
        if device is not None:
            yield from self._subgraph_violations(device)
            yield from self._stream_violations(device)

    def _producer_violations(self) -> Iterator[str]:
        if isinstance(self.input, ir.BlockArgument):
            return
        producer = self.input.owner.operation.name
        if producer not in _PRODUCERS:
            yield (
                f"expected its operand to be an argument or a result of "
                f"{quoted(_PRODUCERS)}, got a result of '{producer}'"
            )

    def _reader_violations(self) -> Iterator[str]:
        readers = {self._reader(use.owner.operation) for use in self.output.uses}
        if len(readers) > 1:
            yield f"expected one operation to read its result, got {len(readers)}"

    def _reader(self, user: ir.Operation) -> ir.Operation:
        """Return the operation beside this one that `user` is or stands in."""
        parent = self.operation.parent.operation
        while user.parent is not None and user.parent.operation != parent:
            user = user.parent.operation
        return user

    def _subgraph_violations(self, device: Device) -> Iterator[str]:
        parent = self.operation.parent.operation
        if parent.name != SUBGRAPH:
            return
        outer = ir.StringAttr(parent.attributes["level"]).value
        names = device.level_names()
        if outer in names and names.index(self.level.value) < names.index(outer):
            yield (
                f"expected its level to be '{outer}' of its subgraph or inside of it, "
                f"got '{self.level.value}'"
            )

    def _stream_violations(self, device: Device) -> Iterator[str]:
        attributes = self.operation.attributes
        if "stream" not in attributes:
            return
        rank, dim = len(self.input.type.shape), attributes["stream"]
        if not isinstance(dim, ir.IntegerAttr) or not 0 <= dim.value < rank:
            yield (
                f"expected attribute 'stream' to be a dimension of {self.input.type}, "
                f"got {dim}"
            )
        outermost = device.level_names()[0]
        if self.level.value == outermost:
            yield (
                f"expected what is streamed to live below level '{outermost}', which "
                f"holds whole tensors"
            )
