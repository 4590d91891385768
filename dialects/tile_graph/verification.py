"""Owns the verifier rules that several ops share, and the reporting of violations.

A rule is a generator of texts "expected ..., got ..."; only the first one of an op is
reported, as MLIR does, so that later rules may rely on earlier ones.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from typing import Any

from magweld.bindings import ir
from magweld.dialects.device_attributes import device_from_attribute
from magweld.dialects.tile_graph.attributes import DeviceAttr, TileAttr
from magweld.dialects.tile_graph.structure import YIELD
from magweld.targets.device import Device, Level, LevelKind

SUBGRAPH = "tile_graph.subgraph"
OPERATOR = "tile_graph.operator"
FOR_TILES = "tile_graph.for_tiles"
SHIFT = "tile_graph.shift"
DEVICE = "tile_graph.device"
IMPLEMENTATIONS = ("generated", "library")


def report(op: ir.OpView, violations: Iterator[str]) -> bool:
    """Emit the first violation as an error at `op`; return whether there is none."""
    violation = next(violations, None)
    if violation is None:
        return True
    operation = op.operation
    operation.location.emit_error(f"'{operation.name}' op {violation}")
    return False


def found_device(op: ir.OpView) -> Generator[str, None, Device | None]:
    """Return the device of the function around `op`.

    Yields a text, and returns None, where there is no function with a proper device.
    """
    parent = op.operation.parent
    while parent is not None and parent.operation.name != "func.func":
        parent = parent.operation.parent
    if parent is None or DEVICE not in parent.operation.attributes:
        yield f"expected the function around it to have attribute '{DEVICE}'"
        return None
    attribute = parent.operation.attributes[DEVICE]
    if not isinstance(attribute, DeviceAttr):
        yield (
            f"expected attribute '{DEVICE}' of the function around it to be a "
            f"#tile_graph.device, got {attribute}"
        )
        return None
    try:
        return device_from_attribute(attribute)
    except ValueError as error:
        yield f"expected a possible device around it: {error}"
        return None


def parent_violations(op: ir.OpView, names: Collection[str]) -> Iterator[str]:
    """Yield a text unless the parent of `op` has one of the names."""
    parent = op.operation.parent
    if parent is None or parent.operation.name not in names:
        yield f"expects parent op to be one of {quoted(names)}"


def region_violations(op: ir.OpView) -> Iterator[str]:
    """Yield what is wrong with a region that stands for the op itself.

    It has one block without arguments, and its `gpu.yield` gives the results.
    """
    operation = op.operation
    blocks = list(operation.regions[0].blocks)
    if len(blocks) != 1:
        yield f"expected one block, got {len(blocks)}"
        return
    if len(blocks[0].arguments):
        yield f"expected a block without arguments, got {len(blocks[0].arguments)}"
    nested = list(blocks[0].operations)
    if not nested or nested[-1].operation.name != YIELD:
        got = f"'{nested[-1].operation.name}'" if nested else "an empty block"
        yield f"expected its block to end in '{YIELD}', got {got}"
        return
    yielded = [value.type for value in nested[-1].operation.operands]
    results = [value.type for value in operation.results]
    yield from _type_violations("yielded value", "result", yielded, results)


def body_violations(op: ir.OpView, allowed: Collection[str]) -> Iterator[str]:
    """Yield a text for the first operation in the block that may not be there."""
    for nested in op.operation.regions[0].blocks[0].operations:
        name = nested.operation.name
        if name not in allowed:
            yield f"expected its body to hold only {quoted(allowed)}, got '{name}'"


def found_level(op: ir.OpView, level: str) -> Generator[str, None, Device | None]:
    """Return the device of the function around `op`.

    Yields a text, and returns None, where there is none with the named level.
    """
    device = yield from found_device(op)
    if device is None or level in device.level_names():
        return device
    yield (
        f"expected its level to be one of {quoted(device.level_names())} of "
        f"device '{device.name}', got '{level}'"
    )
    return None


def implementation_violations(op: ir.OpView) -> Iterator[str]:
    """Yield a text unless the implementation is absent or a known one."""
    attributes = op.operation.attributes
    if "implementation" not in attributes:
        return
    attribute = attributes["implementation"]
    is_text = isinstance(attribute, ir.StringAttr)
    if not is_text or attribute.value not in IMPLEMENTATIONS:
        yield (
            f"expected attribute 'implementation' to be one of "
            f"{quoted(IMPLEMENTATIONS)}, got {attribute}"
        )


def tile_violations(attribute: ir.Attribute, extents: tuple[int, ...]) -> Iterator[str]:
    """Yield a text unless a tile has a positive size for each parallel dimension.

    Args:
        attribute: The attribute in the place of a tile.
        extents: Extents of the parallel dimensions.
    """
    if not isinstance(attribute, TileAttr):
        yield f"expected attribute 'tile' to be a #tile_graph.tile, got {attribute}"
        return
    sizes = attribute.sizes
    if len(sizes) != len(extents):
        yield (
            f"expected its tile to have {len(extents)} sizes, one for each parallel "
            f"dimension, got {len(sizes)}"
        )
    for index, size in enumerate(sizes):
        if not isinstance(size, int) or size < 1:
            yield f"expected size #{index} of its tile to be positive, got {size}"


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


def stage_violations(op: ir.OpView, level: Level) -> Iterator[str]:
    """Yield a text unless steps are held one at a time, or where a program places."""
    name = "copy_stages"
    yield from integer_violations(op, name, least=2)
    if name in op.operation.attributes and level.kind is not LevelKind.EXPLICIT:
        yield (
            f"expected no attribute '{name}' for tiles in '{level.name}', which is a "
            f"{level.kind}"
        )


def nontemporal_violations(op: ir.OpView, level: Level) -> Iterator[str]:
    """Yield a text unless no result, or some, go past the caches that hold tiles."""
    attributes = op.operation.attributes
    if "nontemporal" not in attributes:
        return
    if level.kind is not LevelKind.CACHE:
        yield (
            f"expected no attribute 'nontemporal' for tiles in '{level.name}', which "
            "is no cache"
        )
    numbers = [number.value for number in attributes["nontemporal"]]
    known = range(len(op.operation.results))
    if not numbers or numbers != sorted({*numbers}.intersection(known)):
        yield f"expected numbers of results in 'nontemporal', in order, got {numbers}"


def table_violations(
    op: ir.OpView, name: str, keys: Collection[str], kind: type[Any]
) -> Iterator[str]:
    """Yield a text unless an optional attribute is absent or a table of numbers.

    Args:
        op: The operation.
        name: Of the attribute.
        keys: What the entries may be called.
        kind: Class of attribute that the entries have; none may be negative.
    """
    attributes = op.operation.attributes
    if name not in attributes:
        return
    table = attributes[name]
    if not isinstance(table, ir.DictAttr):
        yield f"expected attribute '{name}' to be a dictionary, got {table}"
        return
    for entry in table:
        if entry.name not in keys:
            yield (
                f"expected entries of '{name}' to be among {quoted(keys)}, "
                f"got '{entry.name}'"
            )
        elif not isinstance(entry.attr, kind) or entry.attr.value < 0:
            yield (
                f"expected '{entry.name}' of '{name}' to be a number of at least 0, "
                f"got {entry.attr}"
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
