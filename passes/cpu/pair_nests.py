"""Owns products whose steps multiply pairs of elements; knows nothing of MLIR.

Two neighbours of the reduction are one element of 32 bits to the loops around them.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod

from magweld.passes.cpu.loop_nest import Access, LoopNest

# Elements of a pair, and the bits that it takes.
PAIR, PAIR_BITS = 2, 32
# Elements of an operand that a copy in pairs of stays in the second cache.
_MOST_COPIED = 1 << 17


def can_be_pairs(nest: LoopNest, panel: int, depth: int) -> bool:
    """Whether a product can be one of pairs along a loop of its reduction.

    The panel is copied so that the elements of a pair are neighbours; the other operand
    is copied as well where they are not.

    Args:
        nest: A product.
        panel: Which operand is copied into panels.
        depth: The loop.
    """
    moves = all(access.strides[depth] for access in nest.inputs)
    other = nest.inputs[1 - panel]
    return (
        nest.bf16_product
        and moves
        and (has_pairs(nest, other, depth) or points(nest, other) <= _MOST_COPIED)
    )


def has_pairs(nest: LoopNest, operand: Access, depth: int) -> bool:
    """Whether the elements of all pairs along a loop are neighbours in memory."""
    return operand.strides[depth] == 1 and nest.extents[depth] % PAIR == 0


def points(nest: LoopNest, operand: Access) -> int:
    """Return how many elements an operand has."""
    loops = zip(nest.extents, operand.strides, strict=True)
    return prod(extent for extent, stride in loops if stride)


def paired_nest(nest: LoopNest, depth: int) -> LoopNest:
    """Return the nest whose steps along a loop take pairs of elements.

    The last one of an odd number of elements is paired with zero.
    """

    def paired(access: Access) -> Access:
        strides = list(access.strides)
        strides[depth] *= PAIR
        return replace(access, strides=tuple(strides), bits=PAIR_BITS)

    extents = list(nest.extents)
    extents[depth] = ceil(extents[depth] / PAIR)
    return replace(
        nest,
        extents=tuple(extents),
        inputs=tuple(map(paired, nest.inputs)),
        odd_pairs=bool(nest.extents[depth] % PAIR),
    )
