"""Owns products whose steps multiply pairs of elements; knows nothing of MLIR.

Two neighbours of the reduction are one element of 32 bits to the loops around them.
"""

from __future__ import annotations

from dataclasses import replace

from magweld.passes.cpu.loop_nest import Access, LoopNest

# Elements of a pair, and the bits that it takes.
PAIR, PAIR_BITS = 2, 32


def can_be_pairs(nest: LoopNest, panel: int, depth: int) -> bool:
    """Whether a product can be one of pairs along a loop of its reduction.

    The panel is copied so that the elements of a pair are neighbours; those of the
    other operand must be where they are.

    Args:
        nest: A product.
        panel: Which operand is copied into panels.
        depth: The loop.
    """
    other = nest.inputs[1 - panel]
    together = other.strides[depth] == 1 and nest.inputs[panel].strides[depth] != 0
    return nest.bf16_product and together and nest.extents[depth] % PAIR == 0


def paired_nest(nest: LoopNest, depth: int) -> LoopNest:
    """Return the nest whose steps along a loop take pairs of elements."""

    def paired(access: Access) -> Access:
        strides = list(access.strides)
        strides[depth] *= PAIR
        return replace(access, strides=tuple(strides), bits=PAIR_BITS)

    extents = list(nest.extents)
    extents[depth] //= PAIR
    inputs = tuple(map(paired, nest.inputs))
    return replace(nest, extents=tuple(extents), inputs=inputs)
