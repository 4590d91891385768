"""Owns the price of the arithmetic in the body of a linalg operation."""

from __future__ import annotations

from typing import Any

# Relative price of one scalar operation; everything else costs one.
_EXPENSIVE = {
    "math.exp": 8,
    "math.erf": 12,
    "math.tanh": 12,
    "math.log": 8,
    "math.sqrt": 4,
    "math.rsqrt": 4,
    "arith.divf": 4,
}


def iteration_flops(root: Any) -> int:
    """Return the price of one iteration of a root, in additions."""
    body = root.regions[0].blocks[0].operations
    return sum(
        _EXPENSIVE.get(op.operation.name, 1)
        for op in body
        if op.operation.name != "linalg.yield"
    )
