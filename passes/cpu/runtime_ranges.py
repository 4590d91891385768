"""Owns the loops over tiles of an extent that a call tells, and shares of them."""

from __future__ import annotations

from collections.abc import Sequence

from magweld.bindings import arith, ir, scf
from magweld.dialects.tile_graph import RuntimeTiles, runtime_steps
from magweld.passes.cpu.emit_index import index_constant

# Lower bound, step and trip count of each dimension of a loop over tiles.
Grid = Sequence[tuple[int | ir.Value, int, int | ir.Value]]


def shares_of_loops(
    extent: ir.Value, runtime: RuntimeTiles, bounds: tuple[ir.Value, ir.Value]
) -> list[tuple[ir.Value, ir.Value]]:
    """Emit which tiles of each loop a range of tile numbers has.

    That is the same share of each loop as of all numbers: threads have as many tiles of
    each size.

    Args:
        extent: What the loops split.
        runtime: The tiles.
        bounds: The first number and the end.
    """
    rest, counts = extent, []
    for step in runtime_steps(runtime.step):
        size = index_constant(step)
        along = arith.DivUIOp(rest, size).result
        rest = arith.RemUIOp(rest, size).result
        counts.append(arith.MulIOp(along, index_constant(runtime.beside)).result)
    total = counts[0]
    for count in counts[1:]:
        total = arith.AddIOp(total, count).result
    some = arith.MaxUIOp(total, index_constant(1)).result

    def part(bound: ir.Value, count: ir.Value) -> ir.Value:
        product = arith.MulIOp(bound, count).result
        found: ir.Value = arith.DivUIOp(product, some).result
        return found

    return [(part(bounds[0], count), part(bounds[1], count)) for count in counts]


def runtime_grid(forall: scf.ForallOp, step: int) -> Grid:
    """Return the grid of a loop with tiles of some size along the extent."""
    lows, highs = list(forall.dynamicLowerBound), list(forall.dynamicUpperBound)
    dynamic = ir.ShapedType.get_dynamic_size()
    grid: list[tuple[int | ir.Value, int, int | ir.Value]] = []
    names = ("staticLowerBound", "staticUpperBound", "staticStep")
    bounds = [list(forall.attributes[name]) for name in names]
    for low, high, size in zip(*bounds, strict=True):
        start: int | ir.Value = lows.pop(0) if low == dynamic else low
        if high != dynamic:
            grid.append((start, size, max(0, -(-(high - low) // size))))
            continue
        length = highs.pop(0)
        if isinstance(start, ir.Value):
            length = arith.SubIOp(length, start).result
        count = arith.DivUIOp(length, index_constant(step)).result
        grid.append((start, size, count))
    return grid


def small_tiles_order(grid: Grid) -> list[int]:
    """Return the dimensions of small tiles, that of the next tile first.

    Rows that are left read the same weights one after another.
    """
    inner_first = reversed(range(len(grid)))
    return sorted(inner_first, key=lambda n: not isinstance(grid[n][2], ir.Value))
