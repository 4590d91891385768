"""Owns which blocks are tried for what a group can stream, and why none are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from magweld.passes.tiling import register_streams
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.matrix_units import instruction_for
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.regions import OperatorKind
from magweld.passes.tiling.stream import Blocks, Stream
from magweld.passes.tiling.streaming import streams
from magweld.targets.device import Device, Level, LevelKind

# Sizes of the blocks that a dimension is streamed in: whole vectors, from what pays for
# the loop around it to what no cache near a core holds with the rows of a tile.
BLOCKS = (64, 128, 256, 512)


def candidate_blocks(
    group: Group, device: Device, levels: Sequence[Level], step: int | None = None
) -> list[Blocks | None]:
    """Return nothing streamed, then every stream in blocks of every size.

    Args:
        group: The operators.
        device: What runs them.
        levels: The levels that can hold reuse tiles.
        step: A size to try as well.
    """
    sizes = _sizes(group, device, levels)
    ways = streams(group) if sizes else ()
    found: list[Blocks | None] = [None]
    for way in (way for way in ways if isinstance(way, Stream)):
        found += [Blocks(way, size) for size in sizes if size < way.extent]
        found += [] if step is None else [Blocks(way, step)]
    return found


def with_reason(
    refusal: Refusal, group: Group, device: Device, levels: Sequence[Level]
) -> Refusal:
    """Add to a refusal why what could be streamed is not."""
    ways = streams(group)
    reasons = [f"{way.rule}: {way.detail}" for way in ways if isinstance(way, Refusal)]
    if not _sizes(group, device, levels) and len(reasons) < len(ways):
        reasons = ["no-stream: tiles are staged, blocks of them are not"]
    if not reasons:
        return refusal
    return replace(refusal, detail=f"{refusal.detail}; not streamed, {reasons[0]}")


def _sizes(group: Group, device: Device, levels: Sequence[Level]) -> tuple[int, ...]:
    """Return the sizes of blocks that are tried, none where nothing is streamed."""
    if any(level.kind is LevelKind.CACHE for level in levels):
        return BLOCKS
    products = [n for n in group.nodes if n.kind is OperatorKind.CONTRACTION]
    in_registers = len(products) > 1 and all(
        instruction_for(node, device) is not None for node in products
    )
    return register_streams.BLOCKS if in_registers else ()
