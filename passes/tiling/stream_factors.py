"""Owns what the products of a stream in registers read, and where blocks of it lie."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from magweld.passes.tiling import warpgroups
from magweld.passes.tiling.matrix_units import matrix_loops, warpgroup_instruction
from magweld.passes.tiling.needs import OperatorTile
from magweld.passes.tiling.regions import STREAM, OperatorKind
from magweld.targets.device import Device, Instruction

# Rows of a fragment.
FRAGMENT = 16
# Bytes of a piece that a thread copies.
_PIECE = 16


def ring_pitch(columns: int, element: int) -> int:
    """Return the elements from row to row of a slot: an odd number of 16 bytes."""
    piece = _PIECE // element
    pieces = -(-columns // piece)
    return (pieces + 1 - pieces % 2) * piece


def streamed_reads(parts: Sequence[OperatorTile]) -> Iterator[tuple[int, int, int]]:
    """Yield what products read in blocks: the node, the read and bytes of a block."""
    for node, part in enumerate(parts):
        if part.model.kind is OperatorKind.CONTRACTION:
            right = right_factor(part)
            yield node, right, ring_bytes(part, right)


def moves(part: OperatorTile, number: int) -> bool:
    """Whether a read is of another region for each block."""
    return any(
        STREAM in dict(interval.offset.terms) for interval in part.read_boxes[number]
    )


def has_rows(part: OperatorTile, number: int) -> bool:
    """Whether what is read is a matrix whose rows are whole pieces of 16 bytes."""
    read = part.model.reads[number]
    sizes = [i.size for i in read.box(part.box)]
    long = [dim for dim, size in enumerate(sizes) if size > 1]
    if len(long) != 2 or read.index[-1] is None:
        return False
    piece = _PIECE // read.element_bytes
    whole = read.shape[-1] % piece == 0 and read.index[-1].constant % piece == 0
    return long[-1] == len(read.shape) - 1 and whole


def right_factor(part: OperatorTile) -> int:
    """Return the number of the read of a product that has its columns."""
    found = matrix_loops(part.model, _lengths(part))
    assert found is not None, "asked of products of matrices"
    (_, (column, *_)), _ = found
    return next(
        number
        for number, read in enumerate(part.model.reads)
        if column in {expr.single_loop for expr in read.index if expr is not None}
    )


def is_of_matrices(part: OperatorTile) -> bool:
    """Whether an operator is a product of two matrices."""
    found = matrix_loops(part.model, _lengths(part))
    return (
        found is not None
        and len(part.model.reads) == 2
        and all(len(side) == 1 for side in found[0])
    )


def sides(part: OperatorTile) -> tuple[int, int, int]:
    """Rows, columns and steps of a product."""
    sizes = _lengths(part)
    found = matrix_loops(part.model, sizes)
    assert found is not None, "asked of products of matrices"
    ((row, *_), (column, *_)), step = found
    return sizes[row], sizes[column], sizes[step]


def ring_bytes(part: OperatorTile, number: int) -> int:
    """Bytes of a block of what a product reads."""
    read = part.model.reads[number]
    *_, outer, inner = (i.size for i in read.box(part.box) if i.size > 1)
    return outer * ring_pitch(inner, read.element_bytes) * read.element_bytes


def _lengths(part: OperatorTile) -> list[int]:
    return [math.ceil(interval.size) for interval in part.box]


def stream_instruction(
    part: OperatorTile, device: Device, plain: Instruction
) -> Instruction:
    """Return what computes a product: warpgroups where they read its right factor."""
    found = warpgroup_instruction(part.model, device)
    read = part.model.reads[right_factor(part)]
    *_, outer, inner = (i.size for i in read.box(part.box) if i.size > 1)
    whole = outer % FRAGMENT == 0 and inner % warpgroups.STEP == 0
    return found if found is not None and whole else plain
