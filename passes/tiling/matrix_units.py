"""Owns what matrix instructions do for a tile: which have it, how fast, what they load.

Knows the instructions that code is generated for; `passes/gpu/matrix_instructions.py`
has their layouts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.passes.tiling import warpgroups
from magweld.passes.tiling.needs import OperatorTile
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.targets.device import Device, Instruction

# Threads of a block of generated code, where a device has as many.
BLOCK_THREADS = 256
# Most elements of a result that a thread keeps in registers.
MOST_SUMS = 64
# Results of one instruction that a subgroup keeps there: four sums of each lane.
_MOST_PIECES = MOST_SUMS // 4
# Matrix units of a multiprocessor, each of which works for one subgroup at a time.
_MATRIX_UNITS = 4
# Rows, columns and steps of the instructions that code is generated for, of 16 bits.
SHAPES = frozenset({(16, 8, 16), (16, 16, 16)})
# Those of devices whose threads go on while they copy to shared memory.
COPYING_AHEAD = frozenset({(16, 8, 16)})
_MMA = (16, 8, 16)
# Elements that rows of their factors in memory are multiples of: 16 bytes.
_ALIGNED = 8
# Types of their factors.
HALVES = frozenset({"f16", "bf16"})
# Steps of such products are multiples of this.
STEP = 16


@dataclass(frozen=True)
class MatrixWork:
    """What matrix instructions do for a tile.

    Attributes:
        operations: Products and sums.
        seconds: What they take of one device, all units together.
        loaded: Bytes of both factors that subgroups load from the level of the tile.
    """

    operations: int
    seconds: float
    loaded: int


def instruction_for(node: OperatorModel, device: Device) -> Instruction | None:
    """Return the instruction of generated code for an operator, None without one."""
    if not node.factors:
        return None
    found = (
        one
        for one in device.instructions
        if one.operand == node.factors and one.shape in SHAPES
    )
    return next(found, None)


def copies_ahead(nodes: Iterable[OperatorModel], device: Device) -> bool:
    """Tell whether a device computes a product while it copies operands of the next."""
    products = (node for node in nodes if node.kind is OperatorKind.CONTRACTION)
    found = (instruction_for(node, device) for node in products)
    return any(one is not None and one.shape in COPYING_AHEAD for one in found)


def matrix_work(part: OperatorTile, device: Device) -> MatrixWork | None:
    """Return what matrix instructions do of an operator, None if they cannot.

    They compute whole fragments of a matrix in the last dimensions of the result, whose
    sums lie in registers: map-to-matrix-instructions and keep-tiles-in-registers.
    Dimensions that are one row in memory, as those of pixels, are one of the matrix.
    """
    node, box = part.model, part.box
    instruction = instruction_for(node, device)
    if instruction is None:
        return None
    sizes = [math.ceil(interval.size) for interval in box]
    loops = matrix_loops(node, sizes)
    if loops is None:
        return None
    sides, step = loops
    rows, columns = (math.prod(sizes[loop] for loop in side) for side in sides)
    high, wide, deep = instruction.shape
    if rows % high or columns % wide or node.extents[step] % deep:
        return None
    operations = 2 * part.points
    if warpgroups_for(part, device) is not None:
        fastest = warpgroup_instruction(node, device)
        assert fastest is not None
        # Four subgroups read their rows together, and all columns.
        lines = rows + rows // warpgroups.ROWS * columns
        return MatrixWork(
            operations,
            # Threads copy the factors meanwhile.
            operations * device.product_slots / (fastest.gflops * 1e9),
            part.points // (rows * columns) * lines * node.reads[0].element_bytes,
        )
    subgroups = min(BLOCK_THREADS, device.threads) // device.warp
    along_rows, along_columns = share_among_subgroups(
        (rows // high, columns // wide), subgroups, (high, wide)
    )
    results = rows * columns
    if results > MOST_SUMS * device.warp * along_rows * along_columns:
        return None
    # Each subgroup loads its rows, which others beside it load as well; and columns.
    lines = along_columns * rows + along_rows * columns
    loaded = part.points // results * lines * node.reads[0].element_bytes
    return MatrixWork(operations, operations / (instruction.gflops * 1e9), loaded)


def warpgroups_for(part: OperatorTile, device: Device) -> tuple[int, int] | None:
    """Return how subgroups share a product that four of them compute together.

    None where they do not: select-warpgroup-products. They want factors from outside,
    of rows of 64 halves, in several steps.
    """
    node, box = part.model, part.box
    if warpgroup_instruction(node, device) is None or not all(part.outside):
        return None
    sizes = [math.ceil(interval.size) for interval in box]
    loops = matrix_loops(node, sizes)
    if loops is None or len(node.extents) != len(node.parallel) + 1:
        return None
    sides, step = loops
    if any(len(side) != 1 for side in sides) or len(node.parallel) != len(sides):
        return None
    lines = [side[0] for side in sides]
    for read, line in zip(node.reads, lines, strict=False):
        is_across = read.index[-1] is not None and read.index[-1].single_loop == line
        if len(read.index) != 2 or read.padded or read.shape[-1] % _ALIGNED:
            return None
        if is_across and sizes[line] % warpgroups.STEP:
            return None
    extent = node.extents[step]
    if extent % warpgroups.STEP or extent == warpgroups.STEP:
        return None
    rows, columns = (sizes[line] for line in lines)
    high, wide, _ = _MMA
    if rows % high or columns % wide:
        return None
    count = min(BLOCK_THREADS, device.threads) // device.warp
    tiles = rows // high, columns // wide
    return warpgroups.share_among_warpgroups(tiles, columns, count)


def warpgroup_instruction(node: OperatorModel, device: Device) -> Instruction | None:
    """Return the instruction by which warpgroups compute an operator, None without."""
    found = (
        one
        for one in device.instructions
        if one.operand == node.factors and one.shape == warpgroups.SHAPE
    )
    return next(found, None) if node.factors else None


def matrix_loops(
    node: OperatorModel, sizes: Sequence[int]
) -> tuple[list[list[int]], int] | None:
    """Return the loops of rows and of columns of a product, and of its reduction.

    None where the result of a tile is no matrix in the last dimensions.

    Args:
        node: The operator.
        sizes: Iterations of a tile, of each loop.
    """
    if node.kind is not OperatorKind.CONTRACTION:
        return None
    written = [expr.single_loop if expr else None for expr in node.writes[0].index]
    long = [loop for loop in written if loop is not None and sizes[loop] > 1]
    steps = [loop for loop in node.reduction if node.extents[loop] > 1]
    sides = _sides(node, long, sizes)
    if len(sides) != 2 or len(steps) != 1 or written[-len(long) :] != long:
        return None
    return sides, steps[0]


def has_rows_of_columns(nodes: Iterable[OperatorModel], device: Device) -> bool:
    """Tell whether columns of a product are the last two dimensions of its result.

    Those of the points of windows are, in rows of their own (`window_products.py`).
    """
    return any(
        instruction_for(node, device) is not None
        and len(node.parallel) > 2
        and _are_one_row(node, *node.parallel[-2:])
        for node in nodes
    )


def _sides(
    node: OperatorModel, loops: Sequence[int], sizes: Sequence[int]
) -> list[list[int]]:
    """Return loops of the result in groups that are one row of every tensor.

    The loops of each are made one: join-tile-loops.
    """
    sides: list[list[int]] = []
    for loop in loops:
        whole = sizes[loop] == node.extents[loop]
        if sides and whole and _are_one_row(node, sides[-1][-1], loop):
            sides[-1].append(loop)
        else:
            sides.append([loop])
    return sides


def _are_one_row(node: OperatorModel, outer: int, inner: int) -> bool:
    """Whether tensors have two loops side by side, all of the inner one, or none."""
    for access in (*node.reads, *node.writes):
        loops = [expr.single_loop if expr else None for expr in access.index]
        moved = [dim for dim, loop in enumerate(loops) if loop in (outer, inner)]
        if not moved:
            continue
        first = moved[0]
        if len(moved) != 2 or loops[first : first + 2] != [outer, inner]:
            return False
        if access.padded or access.shape[first + 1] != node.extents[inner]:
            return False
    return True


@functools.lru_cache
def share_among_subgroups(
    tiles: tuple[int, int], subgroups: int, lines: tuple[int, int] = (1, 1)
) -> tuple[int, int]:
    """Return how many subgroups work along the rows and the columns of a result.

    Those that take the least time, with at most as many sums as registers, and of these
    the ones that load the fewest operands: subgroups that take turns on matrix units
    are no faster than half as many, each of which has a larger piece.

    Args:
        tiles: Results of instructions along rows and columns.
        subgroups: How many there are.
        lines: Rows and columns of the result of one instruction.
    """
    rows, columns = tiles
    choices = [
        (r, c)
        for r in range(1, subgroups + 1)
        for c in range(1, subgroups // r + 1)
        if rows % r == 0 and columns % c == 0
    ]

    def rank(shared: tuple[int, int]) -> tuple[Any, ...]:
        r, c = shared
        piece = (rows // r) * (columns // c)
        fits = piece <= _MOST_PIECES
        turns = -(-r * c // _MATRIX_UNITS) * piece if fits else piece
        loaded = c * rows * lines[0] + r * columns * lines[1]
        return not fits, turns, loaded, shared

    return min(choices, key=rank)
