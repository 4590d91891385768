"""Owns the signature of a kernel, which its launch needs and MLIR does not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSignature:
    """A kernel as its caller sees it.

    Attributes:
        symbol: Name of `void symbol(ptr..., i64 lo, i64 hi)`, with an extent in front
            of `lo` where a call tells it.
        pointers: Number of pointer arguments: operands, then destinations.
        tiles: Number of tiles; the kernel does those from `lo` to below `hi`.
        scratch: Bytes that each call allocates meanwhile.
        has_extent: Whether a call tells an extent, and with it the number of tiles.
    """

    symbol: str
    pointers: int
    tiles: int
    scratch: int = 0
    has_extent: bool = False
