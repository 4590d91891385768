"""Owns the price of the arithmetic in the body of a linalg operation."""

from __future__ import annotations

from collections.abc import Sequence
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
# What is repeated rather than stored and loaded.
_CHEAP = frozenset({"arith.addf", "arith.mulf", "arith.negf", "arith.subf"})


def iteration_flops(root: Any) -> int:
    """Return the price of one iteration of a root, in additions."""
    body = root.regions[0].blocks[0].operations
    return sum(
        _EXPENSIVE.get(op.operation.name, 1)
        for op in body
        if op.operation.name != "linalg.yield"
    )


def argument_uses(root: Any) -> list[bool]:
    """Return of each operand of a linalg operation whether its body reads it."""
    arguments = list(root.regions[0].blocks[0].arguments)
    used = [bool(list(argument.uses)) for argument in arguments]
    return used + [False] * (len(root.operands) - len(used))


def cheap_operations(root: Any, operands: Sequence[int]) -> tuple[int, ...]:
    """Return by how many additions and products a result depends on each operand.

    0 where it depends by any other operation.
    """
    block = root.regions[0].blocks[0]
    arguments, (*body, _) = list(block.arguments), block.operations
    return tuple(
        _cheap_count(arguments[operand], body) if operand < len(arguments) else 0
        for operand in operands
    )


def _cheap_count(argument: Any, body: list[Any]) -> int:
    varying, count = {argument}, 0
    for op in (inner.operation for inner in body):
        if any(value in varying for value in op.operands):
            if op.name not in _CHEAP:
                return 0
            varying.update(op.results)
            count += 1
    return count
