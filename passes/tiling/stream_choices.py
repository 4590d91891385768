"""Owns which blocks are tried for what a group can stream, and why none are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.stream import Blocks, Stream
from magweld.passes.tiling.streaming import streams
from magweld.targets.device import Level, LevelKind

# Sizes of the blocks that a dimension is streamed in: whole vectors, from what pays for
# the loop around it to what no cache near a core holds with the rows of a tile.
BLOCKS = (64, 128, 256, 512)


def candidate_blocks(
    group: Group, levels: Sequence[Level], step: int | None = None
) -> list[Blocks | None]:
    """Return nothing streamed, then every stream in blocks of every size.

    Args:
        group: The operators.
        levels: The levels that can hold reuse tiles.
        step: A size to try as well.
    """
    ways = streams(group) if _can_stream(levels) else ()
    found: list[Blocks | None] = [None]
    for way in (way for way in ways if isinstance(way, Stream)):
        found += [Blocks(way, size) for size in BLOCKS if size < way.extent]
        found += [] if step is None else [Blocks(way, step)]
    return found


def with_reason(refusal: Refusal, group: Group, levels: Sequence[Level]) -> Refusal:
    """Add to a refusal why what could be streamed is not."""
    ways = streams(group)
    reasons = [f"{way.rule}: {way.detail}" for way in ways if isinstance(way, Refusal)]
    if not _can_stream(levels) and len(reasons) < len(ways):
        reasons = ["no-stream: tiles are staged, blocks of them are not"]
    if not reasons:
        return refusal
    return replace(refusal, detail=f"{refusal.detail}; not streamed, {reasons[0]}")


def _can_stream(levels: Sequence[Level]) -> bool:
    return any(level.kind is LevelKind.CACHE for level in levels)
