"""Owns tile_graph.graph."""

from collections.abc import Iterator, Sequence
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.device_attributes import device_from_attribute
from magweld.dialects.tile_graph.attributes import DeviceAttr
from magweld.dialects.tile_graph.dialect import TileGraphDialect
from magweld.dialects.tile_graph.structure import VIEWS, YIELD
from magweld.dialects.tile_graph.verification import (
    OPERATOR,
    SUBGRAPH,
    body_violations,
    region_violations,
    report,
)

_BODY = frozenset(
    {OPERATOR, SUBGRAPH, YIELD, "tile_graph.connect", "func.call", "arith.constant"}
    | VIEWS
)


class GraphOp(
    TileGraphDialect.Operation,
    name="graph",
    traits=[ir.IsIsolatedFromAboveTrait],
):
    """A graph of operators, planned for one device.

    The body holds operators, subgraphs, the connects between them, reshapes, calls
    of operators without lowering, and constants. It uses nothing from outside but
    its operands. It is not pure: a call may have side effects.

    Attributes:
        device: The device, with the memory levels that connects name.
    """

    outputs: Sequence[ext.Result[Any]]
    inputs: Sequence[ext.Operand[Any]]
    device: DeviceAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        """Check the device before the ops in the body look at it."""
        return report(self, self._device_violations())

    def verify_region_invariants(self) -> bool:
        """Check the block, its arguments, its results and its operations."""
        return report(self, self._violations())

    def _device_violations(self) -> Iterator[str]:
        attributes = self.operation.attributes
        device = attributes["device"] if "device" in attributes else None
        if not isinstance(device, DeviceAttr):
            return  # The definition of the op requires one: MLIR reports it.
        try:
            device_from_attribute(device)
        except ValueError as error:
            yield f"has a malformed device: {error}"

    def _violations(self) -> Iterator[str]:
        yield from region_violations(self)
        yield from body_violations(self, _BODY)
