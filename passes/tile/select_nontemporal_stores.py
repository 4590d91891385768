"""Owns select-nontemporal-stores: which results are stored past the caches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.integers import i64s
from magweld.dialects.tile_graph import (
    TileAttr,
    device_of,
    is_tile_graph,
    subgraphs_of,
    type_bytes,
)
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.stream_marks import marked_blocks
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.tiling.external_reads import written_boxes
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Refusal, Tiles, propagate
from magweld.passes.tiling.regions import Access
from magweld.targets.device import Device, Level, LevelKind

# What gives its readers the tensor that it is given, in this or another shape.
_PASSING = frozenset(
    {
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.expand_shape",
        "tile_graph.connect",
    }
)


@dataclass(frozen=True)
class SelectNontemporalStores(FunctionPass):
    """Choose the results that kernels of a CPU store past the caches.

    A store to a line that is in no cache reads the line first, and takes the place of
    another one there. Past the caches it does neither, but whoever reads the result
    has to wait for memory. Of a kernel that moves more than the last cache holds, no
    more than a part of a result is still there at its end: reading that again is less
    than reading all of it before. `nontemporal` of a subgraph has the numbers of such
    results: those of a kernel for which memory takes longer than anything else, whose
    tiles are whole lines. What the graph itself reads again has to be larger than the
    last cache alone: its reader begins with what has left the cache first.

    Left alone are libraries, devices without caches or whose threads share tiles,
    functions that others call, which read their results, and tiles along an extent
    that a call tells, whose results may be small.
    """

    name: ClassVar[str] = "select-nontemporal-stores"

    def run_on_function(self, function: Any) -> None:
        """Annotate the subgraphs of `function`."""
        if not is_tile_graph(function):
            return
        device = device_of(function)
        last = _last_cache(device)
        if last is None:
            return
        is_inner = _is_private(function)
        for subgraph in subgraphs_of(function):
            if _is_bound_by_memory(subgraph, device, last):
                found = _results(subgraph, last, is_read=is_inner)
                if found:
                    subgraph.attributes["nontemporal"] = i64s(found)


def _is_private(function: Any) -> bool:
    """Whether other functions alone call a function."""
    attributes = function.attributes
    name = "sym_visibility"
    return name in attributes and ir.StringAttr(attributes[name]).value == "private"


def _last_cache(device: Device) -> Level | None:
    """Return the cache next to memory of a device whose units have tiles alone."""
    behind = device.levels[1:2]
    is_cache = device.threads == 1 and behind and behind[0].kind is LevelKind.CACHE
    return behind[0] if is_cache else None


def _capacity(level: Level) -> int:
    return level.capacity * level.units


def _is_bound_by_memory(subgraph: Any, device: Device, last: Level) -> bool:
    """Whether memory takes longest, for more than the last cache holds."""
    attributes = subgraph.attributes
    if not {"tile", "moved_after", "predicted_shares"} <= set(attributes):
        return False
    if "implementation" in attributes:
        if ir.StringAttr(attributes["implementation"]).value != "generated":
            return False
    outermost = device.levels[0].name
    shares = {entry.name: entry.attr.value for entry in attributes["predicted_shares"]}
    moved = {entry.name: entry.attr.value for entry in attributes["moved_after"]}
    is_longest = shares[outermost] == max(shares.values())
    return bool(is_longest and moved[outermost] > _capacity(last))


def _results(subgraph: Any, last: Level, *, is_read: bool) -> list[int]:
    """Return the numbers of the results that go past the caches.

    Args:
        subgraph: What makes them.
        last: The cache next to memory.
        is_read: Whether somebody reads what the function returns at once.
    """
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    blocks = marked_blocks(subgraph, body, group)
    if isinstance(blocks, Refusal) or group.root.runtime:
        return []
    tiles = propagate(group, TileAttr(subgraph.attributes["tile"]).sizes, blocks)
    if isinstance(tiles, Refusal):
        return []  # propagate-tiles says so
    lines = _have_whole_lines(group, tiles, last.transaction)
    return [
        number
        for number, value in enumerate(subgraph.operation.results)
        if lines[number]
        and (not _is_read(value, is_read) or type_bytes(value.type) > _capacity(last))
    ]


def _have_whole_lines(group: Group, tiles: Tiles, line: int) -> list[bool]:
    return [
        is_of_whole_lines([interval.size for interval in box], write, line)
        for write, box in written_boxes(group, tiles)
    ]


def is_of_whole_lines(sizes: Sequence[int], write: Access, line: int) -> bool:
    """Return whether boxes of a tensor whose first element begins a line are lines.

    Args:
        sizes: Of the boxes, which lie side by side.
        write: The tensor.
        line: Bytes of a line.
    """
    run = pitch = write.element_bytes
    for size, extent in zip(reversed(sizes), reversed(write.shape), strict=True):
        run, pitch = run * size, pitch * extent
        if size != extent:
            break
    return math.gcd(run, pitch) % line == 0


def _is_read(value: Any, at_the_end: bool) -> bool:
    """Return whether an operation reads a value, as it is or in another shape.

    Args:
        value: The value.
        at_the_end: Whether to return it is to read it.
    """
    users = [use.owner.operation for use in value.uses]
    return any(
        any(_is_read(result, at_the_end) for result in user.results)
        if user.name in _PASSING
        else at_the_end or user.name != "func.return"
        for user in users
    )
