"""Owns minimal filtering on vectors: transforms, and the transposition of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.codegen.emitter import Emitter

Matrix = Sequence[Sequence[float]]
Grid = list[list[Any]]


def transformed(code: Emitter, matrix: Matrix, grid: Grid) -> Grid:
    """Return matrix x grid x transposed matrix."""
    half = _rows(code, matrix, grid)
    return _turned(_rows(code, matrix, _turned(half)))


def _rows(code: Emitter, matrix: Matrix, grid: Grid) -> Grid:
    return [
        [_combined(code, row, column) for column in zip(*grid, strict=True)]
        for row in matrix
    ]


def _turned(grid: Grid) -> Grid:
    return [list(row) for row in zip(*grid, strict=True)]


def _combined(code: Emitter, row: Sequence[float], values: Sequence[Any]) -> Any:
    """Return a sum of values, whose factors differ in sign alone."""
    (size,) = {abs(factor) for factor in row if factor}
    added = [v for factor, v in zip(row, values, strict=True) if factor > 0]
    taken = [v for factor, v in zip(row, values, strict=True) if factor < 0]
    found, *others = added
    for value in others:
        found = code.builder.fadd(found, value)
    for value in taken:
        found = code.builder.fsub(found, value)
    return found if size == 1 else code.builder.fmul(found, code.spread(float(size)))


def transposed(code: Emitter, rows: Sequence[Any]) -> list[Any]:
    """Return the columns of as many vectors as one has lanes."""
    found, lanes = list(rows), code.lanes
    distance = 1
    while distance < lanes:
        for number in range(lanes):
            if number & distance:
                continue
            pair = found[number], found[number + distance]
            low, high = [], []
            for lane in range(lanes):
                is_low = not lane & distance
                low.append(lane if is_low else lanes + lane - distance)
                high.append(lane + distance if is_low else lanes + lane)
            found[number] = code.shuffle(*pair, low)
            found[number + distance] = code.shuffle(*pair, high)
        distance *= 2
    return found
