"""Owns how threads share the results of products and windows that they compute.

For plans and code alike: who has which piece, whether its sums lie in registers, and
what its operands take of shared memory.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Iterator, Sequence

from magweld.passes.tiling.matrix_units import BLOCK_THREADS, MOST_SUMS
from magweld.passes.tiling.needs import OperatorTile
from magweld.passes.tiling.regions import Access, OperatorKind, OperatorModel
from magweld.passes.tiling.tile_sizes import divisors
from magweld.targets.device import Device

# Bytes that the threads of a warp access in one pass over shared memory, and that one
# of them accesses at once.
_PASS_BYTES, _WIDEST_BYTES = 128, 16
_HALF_BYTES = 2

Counts = tuple[int, ...]


def product_counts(
    extents: Counts, operands: Sequence[Collection[int]], threads: int
) -> Counts:
    """Return how many threads work along each loop of the result of a contraction.

    As many threads as possible work; among those, one thread reads the fewest elements
    in a step: its piece is as square as the divisors allow.

    Args:
        extents: Trip counts of the parallel loops, in the order of the output.
        operands: For each input, which of these loops it depends on, by position.
        threads: Threads of the block.
    """
    return _product_counts(extents, _hashable(operands), threads)


@functools.lru_cache(maxsize=4096)
def _product_counts(
    extents: Counts, operands: tuple[Counts, ...], threads: int
) -> Counts:
    def rank(counts: Counts) -> tuple[float, ...]:
        tile = _piece(extents, counts)
        reads = _elements_read(tile, operands)
        return (-math.prod(counts), reads, *(-c for c in reversed(counts)))

    return min(possible_counts(extents, threads), key=rank)


def window_counts(
    extents: Counts,
    operands: Sequence[Collection[int]],
    threads: int,
    subgroup: int,
) -> Counts:
    """Return how many threads work along each loop of the result of windows.

    As many threads as possible work; among those, one thread reads the fewest elements
    for one point of the window, and the innermost loop gets a count near a subgroup.

    Args:
        extents: Trip counts of the parallel loops, in the order of the output.
        operands: For each input, which of these loops it depends on, by position.
        threads: Threads of the block.
        subgroup: Threads that execute in lockstep.
    """
    return _window_counts(extents, _hashable(operands), threads, subgroup)


@functools.lru_cache(maxsize=4096)
def _window_counts(
    extents: Counts, operands: tuple[Counts, ...], threads: int, subgroup: int
) -> Counts:
    def rank(counts: Counts) -> tuple[float, ...]:
        reads = _elements_read(_piece(extents, counts), operands)
        innermost = counts[-1] if counts else 1
        distance = abs(math.log2(innermost / subgroup))
        return (-math.prod(counts), reads, distance, *(-c for c in reversed(counts)))

    return min(possible_counts(extents, threads), key=rank)


def possible_counts(extents: Counts, threads: int) -> Iterator[Counts]:
    """Yield every way to put at most `threads` threads along the loops."""
    choices = [[d for d in divisors(e) if d <= threads] for e in extents]
    for counts in itertools.product(*choices):
        if math.prod(counts) <= threads:
            yield counts


def in_registers(sums: int) -> bool:
    """Tell whether so many elements of a tile lie in the registers of a thread."""
    return sums <= MOST_SUMS


def accessed_bytes(part: OperatorTile, device: Device) -> int:
    """Return what threads take of shared memory to compute an operator, in bytes.

    Of products and windows that no matrix instructions compute. A pass counts as all
    banks, whatever a warp has of it. Sums in registers cost nothing; else each
    multiply-add reads its factors again, and its sum, and writes it.
    """
    if not _is_shared(part.model) or device.threads == 1:
        return 0
    loops = [loop for loop in _written(part.model) if part.box[loop].size > 1]
    extents = tuple(math.ceil(part.box[loop].size) for loop in loops)
    operands = [_loops_of(part.model, number) for number in range(len(part.outside))]
    places = tuple(
        tuple(place for place, loop in enumerate(loops) if loop in own)
        for own in operands
    )
    threads = min(BLOCK_THREADS, device.threads)
    if _has_windows(part.model):
        counts = _window_counts(extents, places, threads, device.warp)
    else:
        counts = _product_counts(extents, places, threads)
    piece = _piece(extents, counts)
    steps = part.points / math.prod(extents)
    warps = -(-math.prod(counts) // device.warp)
    if not in_registers(math.prod(piece)):
        passes = device.shared_sum_passes * math.prod(piece)
    elif _has_windows(part.model):
        passes = sum(
            math.prod(piece[i] for i in own) * _window_passes(read, device)
            for read, own in zip(part.model.reads, places, strict=True)
        )
    else:
        passes = sum(
            math.prod(piece[i] for i in own)
            * _passes(part.model, number, own, counts, device)
            for number, own in enumerate(places)
        )
    return round(passes * steps * warps * _PASS_BYTES * part.times)


def product_slots(part: OperatorTile, device: Device) -> float:
    """Return the slots that a multiply-add takes by those of its arithmetic.

    More than one for products by threads, which load their factors in between.
    """
    is_product = part.model.kind is OperatorKind.CONTRACTION
    return device.product_slots if is_product and device.threads > 1 else 1.0


def _window_passes(read: Access, device: Device) -> float:
    """Return the passes in which a warp reads an element for each of its threads."""
    is_half = read.element_bytes <= _HALF_BYTES
    return device.half_window_passes if is_half else device.window_passes


def _passes(
    node: OperatorModel, number: int, own: Counts, counts: Counts, device: Device
) -> float:
    """Return the passes in which a warp reads an element of a factor for each thread.

    Rows along the reduction are read in wide pieces, neighbours of equal rows at once.
    Halves in rows that are no whole pieces, or across them, are read and widened one by
    one, as those of windows are: products over 319 of them took so long on an H100.
    """
    read = node.reads[number]
    last = read.index[-1]
    loop = None if last is None else last.single_loop
    wide = _WIDEST_BYTES // read.element_bytes
    is_half = read.element_bytes <= _HALF_BYTES
    if loop is None or loop not in node.reduction:
        return device.half_window_passes if is_half else 1.0
    if is_half and node.extents[loop] % wide:
        return device.half_window_passes
    lanes, rows = 32, 1
    for place in reversed(range(len(counts))):
        along = min(lanes, counts[place])
        rows *= along if place in own else 1
        lanes = max(1, lanes // along)
    return max(1.0, rows * _WIDEST_BYTES / _PASS_BYTES) / wide


def _is_shared(node: OperatorModel) -> bool:
    """Whether each thread computes whole sums: of products, and of windows."""
    if not node.reduction or any(index is None for index in node.writes[0].index):
        return False
    known = all(None not in read.index for read in node.reads)
    is_product = node.kind is OperatorKind.CONTRACTION
    return known and (is_product or _has_windows(node))


def _has_windows(node: OperatorModel) -> bool:
    """Whether an index is more than one loop."""
    return any(
        index is not None and len(index.terms) > 1
        for read in node.reads
        for index in read.index
    )


def _written(node: OperatorModel) -> list[int]:
    """Return the loops of the result, in its order."""
    return [
        loop
        for index in node.writes[0].index
        if index is not None
        for loop, _ in index.terms
    ]


def _loops_of(node: OperatorModel, number: int) -> set[int]:
    """Return the loops that an operand depends on."""
    return {
        loop
        for index in node.reads[number].index
        if index is not None
        for loop, _ in index.terms
    }


def _piece(extents: Counts, counts: Counts) -> Counts:
    return tuple(e // c for e, c in zip(extents, counts, strict=True))


def _elements_read(piece: Sequence[int], operands: Sequence[Collection[int]]) -> int:
    """Return how many elements of its operands a piece of the output depends on."""
    return sum(math.prod(piece[i] for i in loops) for loops in operands)


def _hashable(operands: Sequence[Collection[int]]) -> tuple[Counts, ...]:
    return tuple(tuple(sorted(loops)) for loops in operands)
