"""Owns the signature of a kernel, which its launch needs and MLIR does not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSignature:
    """A kernel as its caller sees it.

    Attributes:
        symbol: Name of `void symbol(ptr..., i64 lo, i64 hi)`.
        pointers: Number of pointer arguments: operands, then destinations.
        tiles: Number of tiles; the kernel does those from `lo` to below `hi`.
        scratch: Bytes that each call allocates meanwhile.
    """

    symbol: str
    pointers: int
    tiles: int
    scratch: int = 0
