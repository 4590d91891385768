"""Owns the verifier rules that several ops share, and the reporting of violations.

A rule is a generator of texts "expected ..., got ..."; only the first one of an op is
reported, as MLIR does, so that later rules may rely on earlier ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from magweld.bindings import ir
from magweld.dialects.device_attributes import device_from_attribute
from magweld.dialects.tile_graph.attributes import DeviceAttr
from magweld.dialects.tile_graph.structure import YIELD
from magweld.targets.device import Device

GRAPH = "tile_graph.graph"
SUBGRAPH = "tile_graph.subgraph"
OPERATOR = "tile_graph.operator"


def report(op: ir.OpView, violations: Iterator[str]) -> bool:
    """Emit the first violation as an error at `op`; return whether there is none."""
    violation = next(violations, None)
    if violation is None:
        return True
    operation = op.operation
    operation.location.emit_error(f"'{operation.name}' op {violation}")
    return False


def enclosing_graph(op: ir.Operation) -> ir.Operation | None:
    """Return the nearest `tile_graph.graph` around an operation."""
    parent = op.parent
    while parent is not None and parent.operation.name != GRAPH:
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def enclosing_device(op: ir.Operation) -> Device | None:
    """Return the device of the nearest graph around `op`.

    None where there is no such graph, or its device is malformed: then the graph's
    own verifier says so.
    """
    graph = enclosing_graph(op)
    device = None if graph is None else graph.attributes["device"]
    if not isinstance(device, DeviceAttr):
        return None
    try:
        return device_from_attribute(device)
    except ValueError:
        return None


def parent_violations(op: ir.OpView, names: Collection[str]) -> Iterator[str]:
    """Yield a text unless the parent of `op` has one of the names."""
    parent = op.operation.parent
    if parent is None or parent.operation.name not in names:
        yield f"expects parent op to be one of {quoted(names)}"


def region_violations(op: ir.OpView) -> Iterator[str]:
    """Yield what is wrong with a region that stands for the op itself.

    It has one block, whose arguments are the operands and whose `tile_graph.yield`
    gives the results. No value from outside is used: `IsIsolatedFromAboveTrait`.
    """
    operation = op.operation
    blocks = list(operation.regions[0].blocks)
    if len(blocks) != 1:
        yield f"expected one block, got {len(blocks)}"
        return
    operands = [value.type for value in operation.operands]
    arguments = [argument.type for argument in blocks[0].arguments]
    yield from _type_violations("block argument", "operand", arguments, operands)
    terminator = blocks[0].operations[len(blocks[0].operations) - 1].operation
    if terminator.name != YIELD:
        yield f"expected its block to end in '{YIELD}', got '{terminator.name}'"
        return
    yielded = [value.type for value in terminator.operands]
    results = [value.type for value in operation.results]
    yield from _type_violations("yielded value", "result", yielded, results)


def body_violations(op: ir.OpView, allowed: Collection[str]) -> Iterator[str]:
    """Yield a text for the first operation in the block that may not be there."""
    for nested in op.operation.regions[0].blocks[0].operations:
        name = nested.operation.name
        if name not in allowed:
            yield f"expected its body to hold only {quoted(allowed)}, got '{name}'"


def level_violations(op: ir.OpView, level: str) -> Iterator[str]:
    """Yield a text unless the device of the enclosing graph has the level."""
    device = enclosing_device(op.operation)
    if device is not None and level not in device.level_names():
        yield (
            f"expected its level to be one of {quoted(device.level_names())} of "
            f"device '{device.name}', got '{level}'"
        )


def integer_violations(op: ir.OpView, name: str, least: int) -> Iterator[str]:
    """Yield a text unless an optional attribute is absent or a large enough integer."""
    attributes = op.operation.attributes
    if name not in attributes:
        return
    attribute = attributes[name]
    if not isinstance(attribute, ir.IntegerAttr):
        yield f"expected attribute '{name}' to be an integer, got {attribute}"
    elif attribute.value < least:
        yield (
            f"expected attribute '{name}' to be at least {least}, got {attribute.value}"
        )


def quoted(names: Collection[str]) -> str:
    """Return names in quotes with commas, in their order; sets are sorted."""
    ordered = sorted(names) if isinstance(names, frozenset) else names
    return ", ".join(f"'{name}'" for name in ordered)


def _type_violations(
    what: str, like: str, got: list[ir.Type], expected: list[ir.Type]
) -> Iterator[str]:
    if len(got) != len(expected):
        yield (
            f"expected as many {what}s as {like}s, got {len(got)} {what}s and "
            f"{len(expected)} {like}s"
        )
        return
    for index, (type_, other) in enumerate(zip(got, expected, strict=True)):
        if type_ != other:
            yield (
                f"expected {what} #{index} to have the type of {like} #{index}, "
                f"{other}, got {type_}"
            )
