"""Owns how much of a long reduction of a product a cache holds at one time.

Generated code walks such reductions block by block: what a core reads again and again
is one block of the rows and of the columns of a tile, however long the reduction is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence

from magweld.passes.tiling.first_cache import LINE_BYTES
from magweld.passes.tiling.regions import (
    ZERO,
    Access,
    Interval,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.tiling.winograd_forms import (
    CHANNELS,
    ROWS,
)

# Iterations of a block. Sums are read and written once a block, which is little beside
# this many multiply-adds for each. A panel of 16 columns takes 3 of the 8 ways of a
# first cache of 32 KiB, which leaves 5 for rows that are multiples of 4 KiB apart and
# so meet in the same sets: 1024 x 3072 x 768 runs at 41 GMAC/s with blocks of 256, at
# 44 with 192 and 128; 1024 x 768 x 3072 at 40, 40 and 38 (one core of Zen 3).
REDUCTION_BLOCK = 192
# Bytes of an element of the sums. Narrower ones would be rounded between two blocks.
BLOCKED_BYTES = 4
# Times that an operand has to be read for its blocks to pay.
LEAST_READS = 16
# Most bytes of an image with its border in explicit memory, if a channel has no more:
# convolutions that sum over channels advance over them.
BORDERED_BYTES = 16384
_PRODUCTS = (OperatorKind.CONTRACTION, OperatorKind.CONVOLUTION)


def block_of(extent: int, most: int = REDUCTION_BLOCK) -> int:
    """Return the iterations of the blocks of a reduction; the last may have fewer.

    Blocks are about equal, and whole cache lines of f32: a short one at the end would
    read and write as many sums for little.

    Args:
        extent: Iterations of the reduction.
        most: Iterations of the longest block; fewer than two of these are one block.
    """
    if extent < 2 * most:
        return extent
    blocks = -(-extent // most)
    equal = -(-extent // blocks)
    return min(most, _rounded_up(equal, LINE_BYTES // BLOCKED_BYTES))


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def block_count(node: OperatorModel) -> int:
    """Return in how many blocks a product's reduction is walked; 1 for all else."""
    loop = _blocked_loop(node)
    if loop is None:
        return 1
    return -(-node.extents[loop] // block_of(node.extents[loop]))


def chosen_block(extent: int, reads: int) -> int | None:
    """Return the iterations of a block of a reduction; None for one block.

    Args:
        extent: Iterations of the reduction.
        reads: How often the operand that is read least is read.
    """
    block = block_of(extent)
    return block if block < extent and reads >= LEAST_READS else None


def reduction_block(node: OperatorModel, box: Sequence[Interval]) -> int | None:
    """Return the iterations of a block in which a product's reduction is walked.

    None where it is walked from its begin to its end: sums would wait in memory for
    little, or would be rounded there.

    Args:
        node: The operator.
        box: The iterations of a tile.
    """
    loop = _blocked_loop(node)
    if loop is None or any(box[d].size > box[loop].size for d in node.reduction):
        return None
    return chosen_block(box[loop].size, min(_reads(node, box), default=0))


def _reads(node: OperatorModel, box: Sequence[Interval]) -> Iterator[int]:
    """Yield how often a box reads an element of each operand."""
    for read in node.reads:
        moves = {term[0] for index in read.index if index for term in index.terms}
        yield math.prod(box[d].size for d in node.parallel if d not in moves)


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


def bordered_bytes(
    node: OperatorModel, read: Access, box: tuple[Interval, ...], step: int = 0
) -> int:
    """Return the bytes of a copy of a padded operand in explicit memory.

    Args:
        node: The operator that reads it.
        read: The operand.
        box: The iterations of a tile.
        step: Channels that are copied at a time; 0 for as many as there is room for.
    """
    size = math.prod(read.bordered(box)) * read.element_bytes
    summed = [
        index.single_loop
        for index in read.index
        if index is not None and index.single_loop in node.reduction
    ]
    channels = math.prod(math.ceil(box[loop].size) for loop in summed)
    if step:
        return size // channels * step
    return min(size, max(size // channels, BORDERED_BYTES))


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
