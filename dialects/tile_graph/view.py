"""Owns reading tile graphs: their device, operators and subgraphs."""

from __future__ import annotations

from magweld.bindings import ir
from magweld.diagnostics import Diagnostic, PassError, Severity, position_of
from magweld.dialects.device_attributes import device_from_attribute
from magweld.dialects.tile_graph.attributes import DeviceAttr
from magweld.dialects.tile_graph.ops import (
    OperatorOp,
    SubgraphOp,
)
from magweld.dialects.tile_graph.verification import DEVICE
from magweld.targets.device import Device


def is_tile_graph(function: ir.Operation | ir.OpView) -> bool:
    """Return whether a function is a tile graph: it has a device."""
    return DEVICE in function.operation.attributes


def device_of(function: ir.Operation | ir.OpView) -> Device:
    """Return the device that a function's graph is planned for.

    Raises:
        PassError: The attribute describes no device; located at the function.
    """
    attribute = function.operation.attributes[DEVICE]
    try:
        if not isinstance(attribute, DeviceAttr):
            raise ValueError(f"expected a device, got {attribute}")
        return device_from_attribute(attribute)
    except ValueError as error:
        text = f"'{function.operation.name}' op has a wrong {DEVICE}: {error}"
        position = position_of(function.operation.location)
        diagnostic = Diagnostic(Severity.ERROR, text, position)
        raise PassError(text, diagnostics=(diagnostic,)) from error


def operators_of(container: ir.Operation | ir.OpView) -> list[OperatorOp]:
    """Return the operators directly in a function or subgraph, in order."""
    return [op for op in _body(container) if isinstance(op, OperatorOp)]


def subgraphs_of(function: ir.Operation | ir.OpView) -> list[SubgraphOp]:
    """Return the subgraphs of a function, in order."""
    return [op for op in _body(function) if isinstance(op, SubgraphOp)]


def _body(container: ir.Operation | ir.OpView) -> list[ir.OpView]:
    return list(container.operation.regions[0].blocks[0].operations)
