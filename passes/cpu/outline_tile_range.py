"""Owns outline-tile-range: a kernel becomes a loop over a range of tile numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from magweld.bindings import arith, func, ir, memref, scf
from magweld.dialects.tile_graph import (
    PARTS,
    RUNTIME,
    RuntimeTiles,
    runtime_steps,
)
from magweld.passes.cpu.emit_index import index_constant
from magweld.passes.cpu.kernels import TILES, kernels_of
from magweld.passes.cpu.runtime_ranges import (
    Grid,
    runtime_grid,
    shares_of_loops,
    small_tiles_order,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import (
    add_remark,
    forall_grid,
    located_error,
    operations_of,
)

# Operations on buffers that may stand beside the loop: repeated in every range,
# they write nothing that another range could see.
_PURE_PREFIXES = ("arith.", "affine.", "memref.subview", "memref.cast")
_RUNTIME_BOUNDS = ("extent", "lo", "hi")
_PURE = {
    "memref.alloc",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.get_global",
    "memref.reinterpret_cast",
    "scf.forall",
    "func.return",
}


@dataclass(frozen=True)
class OutlineTileRange(Pass):
    """Turn the forall of each bufferised kernel into a loop over tile numbers.

    The kernel gets two arguments more, `lo` and `hi`, and runs the tiles lo..hi-1,
    numbered row-major over the grid; `magweld.tiles` says how many there are.
    Results become nothing: a result that is not in its destination, the memref
    argument at the end that stands for it, is copied there.

        func @k(%a, %out) -> memref {            func @k(%a, %out, %lo, %hi) {
          scf.forall (%i) = (0) to (64)    =>      scf.for %t = %lo to %hi step 1 {
              step (16) { f(%i) }                    %i = %t * 16
          return %out }                              f(%i) } return }

    The loops of a kernel with `tile_graph.parts` are numbered one after another: its
    tiles have as many shapes. A kernel with `tile_graph.runtime` takes its extent as
    an argument in front of `lo`, and `magweld.tiles` counts the tiles of the number
    that stands for the extent; a range has the same share of each of its loops. Of
    other kernels, those without a forall, with several, or with anything else to do are
    one tile.
    """

    name: ClassVar[str] = "outline-tile-range"

    def run(self, module: ir.Operation) -> None:
        """Rewrite all kernels of the module."""
        for function in kernels_of(module):
            with function.location:
                _drop_results(function)
                runtime = RuntimeTiles.of(function)
                if runtime is None:
                    tiles = _outline(function)
                else:
                    tiles = _outline_runtime(function, runtime)
                number = ir.IntegerType.get_signless(64)
                function.attributes[TILES] = ir.IntegerAttr.get(number, tiles)


def _drop_results(function: func.FuncOp) -> None:
    """Return nothing; leave every result in its destination."""
    *_, terminator = function.entry_block.operations
    values = list(terminator.operands)
    arguments = list(function.entry_block.arguments)
    destinations = arguments[max(0, len(arguments) - len(values)) :]
    if [_buffer_shape(v) for v in values] != [_buffer_shape(v) for v in destinations]:
        raise located_error(function, "expected a destination for every result")
    for value, destination in zip(values, destinations, strict=True):
        if value == destination:
            continue
        with ir.InsertionPoint(terminator):
            memref.CopyOp(value, destination)
    with ir.InsertionPoint(terminator):
        func.ReturnOp([])
    terminator.operation.erase()
    index = ir.IndexType.get()
    for _ in ("lo", "hi") if RUNTIME not in function.attributes else _RUNTIME_BOUNDS:
        function.entry_block.add_argument(index, function.location)
    inputs = [argument.type for argument in function.entry_block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(inputs, [])
    )


def _buffer_shape(value: ir.Value) -> list[int] | ir.Value:
    """Return the extents of a buffer; another value is like itself alone."""
    is_buffer = isinstance(value.type, ir.MemRefType)
    return list(value.type.shape) if is_buffer else value


def _outline(function: func.FuncOp) -> int:
    foralls = operations_of(function, scf.ForallOp)
    top = [op for op in foralls if op.operation.parent == function.operation]
    others = [
        str(op.operation.name)
        for op in function.entry_block.operations
        if not _is_repeatable(str(op.operation.name))
    ]
    expected = function.attributes[PARTS].value if PARTS in function.attributes else 1
    if len(top) != expected or others:
        add_remark(function, "runs as one tile: " + _why(len(top), expected, others))
        return 1
    grids = [grid for grid in map(forall_grid, top) if grid is not None]
    if len(grids) < len(top):
        add_remark(function, "runs as one tile: the grid has dynamic bounds")
        return 1
    first = 0
    for forall, grid in zip(top, grids, strict=True):
        count = prod(count for _, _, count in grid)
        with ir.InsertionPoint(forall), forall.location:
            bounds = _own_numbers(function, first, count, alone=len(top) == 1)
        _replace_by_range(forall, bounds, grid)
        first += count
    return first


def _outline_runtime(function: func.FuncOp, runtime: RuntimeTiles) -> int:
    """Outline the loops of a kernel whose extent a call tells, one for each step."""
    *_, extent, low, high = function.entry_block.arguments
    for dim in operations_of(function, memref.DimOp):
        if not isinstance(dim.operands[0], ir.BlockArgument):
            raise located_error(dim, "expected the extent of an argument")
        dim.results[0].replace_all_uses_with(extent)
        dim.operation.erase()
    foralls = operations_of(function, scf.ForallOp)
    top = [op for op in foralls if op.operation.parent == function.operation]
    steps = runtime_steps(runtime.step)
    others = [
        str(op.operation.name)
        for op in function.entry_block.operations
        if not _is_repeatable(str(op.operation.name))
    ]
    if len(top) != len(steps) or others:
        raise located_error(function, _why(len(top), len(steps), others))
    with ir.InsertionPoint(top[0]), function.location:
        shares = shares_of_loops(extent, runtime, (low, high))
    for forall, step, bounds in zip(top, steps, shares, strict=True):
        with ir.InsertionPoint(forall), forall.location:
            grid = runtime_grid(forall, step)
        order = small_tiles_order(grid) if step < runtime.step else None
        _replace_by_range(forall, bounds, grid, order)
    return runtime.count(runtime.extent)


def _own_numbers(
    function: func.FuncOp, first: int, count: int, *, alone: bool
) -> tuple[ir.Value, ir.Value]:
    """Return the range of the tiles of one loop, numbered from zero.

    Args:
        function: The kernel.
        first: Tiles of the loops before.
        count: Tiles of this loop.
        alone: Whether there is no other loop.
    """
    *_, low, high = function.entry_block.arguments
    if alone:
        return low, high
    own = [
        arith.MinSIOp(
            arith.MaxSIOp(
                arith.SubIOp(bound, index_constant(first)).result, index_constant(0)
            ).result,
            index_constant(count),
        ).result
        for bound in (low, high)
    ]
    return own[0], own[1]


def _is_repeatable(name: str) -> bool:
    return name in _PURE or name.startswith(_PURE_PREFIXES)


def _why(loops: int, expected: int, others: list[str]) -> str:
    if loops != expected:
        return f"it has {loops} loops over tiles"
    return f"'{others[0]}' stands beside the loop over tiles"


def _replace_by_range(
    forall: scf.ForallOp,
    bounds: tuple[ir.Value, ir.Value],
    grid: Grid,
    order: Sequence[int] | None = None,
) -> None:
    """Replace a loop over tiles by one over their numbers.

    Args:
        forall: The loop.
        bounds: The first number and the end.
        grid: Lower bound, step and trip count of each dimension.
        order: The dimensions, that of the next tile first; None for inner ones first.
    """
    order = range(len(grid))[::-1] if order is None else order
    with ir.InsertionPoint(forall), forall.location:
        loop = scf.ForOp(*bounds, index_constant(1))
    with ir.InsertionPoint(loop.body), forall.location:
        indices = _tile_origin(loop.induction_variable, grid, order)
        terminator = scf.YieldOp([])
    body = forall.regions[0].blocks[0]
    for argument, index in zip(body.arguments, indices, strict=True):
        argument.replace_all_uses_with(index)
    for op in list(body.operations)[:-1]:
        op.operation.move_before(terminator.operation)
    forall.operation.erase()


def _tile_origin(
    number: ir.Value,
    grid: Grid,
    order: Sequence[int],
) -> list[ir.Value]:
    """Emit the first point of a tile from its number."""
    indices: dict[int, ir.Value] = {}
    rest = number
    for position in order:
        low, step, count = grid[position]
        own = arith.RemUIOp(rest, _as_value(count)).result
        rest = arith.DivUIOp(rest, _as_value(count)).result
        scaled = arith.MulIOp(own, index_constant(step)).result
        indices[position] = arith.AddIOp(scaled, _as_value(low)).result
    return [indices[position] for position in range(len(grid))]


def _as_value(number: int | ir.Value) -> ir.Value:
    return index_constant(number) if isinstance(number, int) else number
