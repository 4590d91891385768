"""Owns how much of a long reduction of a product a cache holds at one time.

Generated code walks such reductions block by block: what a core reads again and again
is one block of the rows and of the columns of a tile, however long the reduction is.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from magweld.passes.analysis.regions import (
    ZERO,
    Interval,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.analysis.winograd import CHANNELS, ROWS

# Iterations of a block. Sums are read and written once a block, which is little beside
# this many multiply-adds for each, and a block of 128 rows takes an eighth of 1 MiB.
REDUCTION_BLOCK = 256
# Narrower sums would be rounded between two blocks.
BLOCKED_BYTES = 4
_PRODUCTS = (OperatorKind.CONTRACTION, OperatorKind.CONVOLUTION)


def block_of(extent: int) -> int:
    """Return the iterations of the blocks of a reduction; the last may have fewer."""
    if extent < 2 * REDUCTION_BLOCK:
        return extent
    return REDUCTION_BLOCK


def block_count(node: OperatorModel) -> int:
    """Return in how many blocks a product's reduction is walked; 1 for all else."""
    loop = _blocked_loop(node)
    if loop is None:
        return 1
    return -(-node.extents[loop] // block_of(node.extents[loop]))


def one_block(node: OperatorModel, box: Sequence[Interval]) -> tuple[Interval, ...]:
    """Return the iterations of a box that a block does.

    With fewer products than its windows have, a convolution walks the rows of its
    weights in blocks as well.
    """
    loops, loop = list(box), _blocked_loop(node)
    if node.winograd:
        row = node.parallel[1]
        loops[row] = Interval(ZERO, min(box[row].size, ROWS))
    if loop is not None:
        loops[loop] = Interval(ZERO, min(box[loop].size, block_of(node.extents[loop])))
    return tuple(loops)


def few_channels(
    node: OperatorModel, box: tuple[Interval, ...]
) -> tuple[Interval, ...]:
    """Return the iterations of a box whose operands are in a cache side by side.

    Transforms around fewer products than a convolution's windows have read each
    channel of the image, and of the weights, once.
    """
    if not node.winograd:
        return box
    loops, channel = list(box), node.reduction[0]
    loops[channel] = Interval(ZERO, min(box[channel].size, CHANNELS))
    return tuple(loops)


def is_alone(loop: int, indices: Iterable[LinearIndex | None]) -> bool:
    """Return whether a loop is an index of its own wherever it is a part of one.

    The loops of a window are not: they move the image together with its rows.
    """
    return all(
        index is not None
        and (index.single_loop == loop or all(term[0] != loop for term in index.terms))
        for index in indices
    )


# Asked for every node of every tile that is tried.
@functools.lru_cache(maxsize=4096)
def _blocked_loop(node: OperatorModel) -> int | None:
    wide = node.writes[0].element_bytes >= BLOCKED_BYTES
    if node.kind not in _PRODUCTS or node.winograd or not wide or not node.reduction:
        return None
    longest = max(node.reduction, key=lambda loop: node.extents[loop])
    # Tiles begin where they read: what is added to an index is no part of their code.
    indices = [
        index and index._replace(constant=0)
        for read in node.reads
        for index in read.index
    ]
    return longest if is_alone(longest, indices) else None
