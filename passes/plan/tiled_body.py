"""Owns the body of a kernel: the plan of a subgraph as linalg on slices in a forall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from magweld.bindings import affine, ir, scf, tensor
from magweld.dialects.tile_graph import (
    BESIDE,
    LASTING,
    REDUCTION_BLOCK,
    GridLoop,
    captured_values,
    grid_parts,
    has_overlapping_tiles,
    is_beside,
    runtime_loop,
    runtime_steps,
)
from magweld.passes.analysis.index_maps import dims_of
from magweld.passes.ir.cloning import ValueMap, clone_helper, clone_mapped
from magweld.passes.ir.tensor_slices import extract_slice, insert_in_parallel


def build_tiled_body(
    plan: Any,
    inputs: dict[Any, Any],
    destinations: list[Any],
    extent: Any | None = None,
) -> list[Any]:
    """Build the loops over tiles at the insertion point and return their results.

    There is one for the tiles of each shape; all write parts of their own.

    Args:
        plan: A `tile_graph.for_tiles`.
        inputs: What stands for each tensor that the plan loads.
        destinations: One tensor a result, overwritten completely.
        extent: Of the loop whose extent a call tells, if there is one; type index.
    """
    extents = [size.value for size in plan.attributes["extents"]]
    steps = [size.value for size in plan.attributes["steps"]]
    runtime = runtime_loop(plan)
    overlapping = has_overlapping_tiles(plan)
    parts = grid_parts(extents, steps, runtime, overlapping=overlapping)
    # The loops of several parts stand side by side: none may become plain code.
    mapping = unfolded(len(extents)) if len(parts) > 1 else None
    results = destinations
    for part, block in zip(parts, plan.operation.regions[0].blocks, strict=True):
        # A kernel of one tile is a loop over tiles as well.
        loops = part or (GridLoop(0, 1, 1),)
        starts: list[Any] = [loop.start for loop in loops]
        ends: list[Any] = [loop.end for loop in loops]
        for number in runtime:
            sizes = (0, *runtime_steps(steps[number]))
            at = sizes.index(loops[number].step)
            starts[number] = _multiple(extent, sizes[at - 1])
            ends[number] = _multiple(extent, sizes[at])
        steps_of_part = [loop.step for loop in loops]
        forall = scf.ForallOp(starts, ends, steps_of_part, results, mapping=mapping)
        last = [
            end - n if overlapping and end % n else None
            for end, n in zip(extents, steps, strict=True)
        ]
        _fill(forall, plan, block, inputs, last)
        results = list(forall.results)
    return results


def _fill(
    forall: Any,
    plan: Any,
    block: Any,
    inputs: dict[Any, Any],
    last: Sequence[int | None],
) -> None:
    """Lower a block of a plan into the loop over its tiles.

    Args:
        forall: The loop.
        plan: Of which it is.
        block: What it does.
        inputs: What stands for each tensor that the plan loads.
        last: Where the last tile along a loop begins, if it overlaps the one before.
    """
    arguments = list(forall.body.arguments)
    first = len(arguments) - len(forall.results)
    body = _TiledBody(block, inputs, arguments[first:])
    with ir.InsertionPoint(forall.body):
        for number, position in enumerate(block.arguments):
            body.values[position] = _no_further(arguments[number], last[number])
        for value in captured_values(plan):
            clone_helper(value, body.values)
        body.lower(block)
        parallel = scf.InParallelOp()
    for store in sorted(body.stores, key=lambda op: int(op.attributes["result"].value)):
        with ir.InsertionPoint(parallel), store.location:
            body.insert(store, parallel)


def _no_further(variable: Any, last: int | None) -> Any:
    """Emit where a tile begins, which is no further than a number."""
    if last is None:
        return variable
    dim = ir.AffineExpr.get_dim(0)
    end = ir.AffineExpr.get_constant(last)
    map_ = ir.AffineMap.get(1, 0, [dim, end])
    return affine.AffineMinOp(map_, [variable]).result


def _multiple(extent: Any, size: int) -> Any:
    """Emit the largest multiple of a size that is no more than an extent."""
    if size <= 1:
        return extent if size else 0
    whole = ir.AffineExpr.get_floor_div(
        ir.AffineExpr.get_dim(0), ir.AffineExpr.get_constant(size)
    )
    map_ = ir.AffineMap.get(1, 0, [whole * size])
    return affine.AffineApplyOp(map_, [extent]).result


def unfolded(loops: int) -> ir.Attribute:
    """Return a mapping that keeps a loop over tiles a loop if it has one tile.

    Upstream inlines the bodies of others, and of several stores to one result in them
    keeps the first. What the loops are mapped to means nothing.

    Args:
        loops: How many loops it is over.
    """
    names = (f"#gpu.block<linear_dim_{loop}>" for loop in range(loops))
    return ir.Attribute.parse(f"[{', '.join(names)}]")


class _TiledBody:
    """Lowers the ops of one plan.

    Attributes:
        values: What stands for values of the plan.
        stores: The stores, all in the body of the loop over tiles.
    """

    def __init__(
        self, block: Any, inputs: dict[Any, Any], destinations: list[Any]
    ) -> None:
        self.values = ValueMap()
        for value, argument in inputs.items():
            self.values[value] = argument
        self._destinations = destinations
        self._beside: dict[str, Any] = {}
        ops = [op.operation for op in block.operations]
        self.stores = [op for op in ops if op.name == "tile_graph.store"]
        self._stored = {op.operands[1]: op for op in self.stores}

    def lower(self, block: Any) -> None:
        """Lower the operations of a block of the plan at the insertion point."""
        for op in (nested.operation for nested in block.operations):
            with op.location:
                _LOWERINGS.get(op.name, _TiledBody._clone)(self, op)

    def insert(self, store: Any, parallel: Any) -> None:
        """Insert a tile into a destination, in the terminator of the loop."""
        offsets, sizes = self._region(store)
        value = self.values[store.operands[0]]
        destination = self._destinations[store.attributes["result"].value]
        with ir.InsertionPoint(parallel.region.blocks[0]):
            insert_in_parallel(value, destination, offsets, sizes)

    def _clone(self, op: Any) -> None:
        clone_mapped(op, self.values)

    def _nothing(self, op: Any) -> None:
        """What says when memory is free, and who waits, is decided anew for buffers."""

    def _load(self, op: Any) -> None:
        value = self.values[op.operands[0]]
        self.values[op.results[0]] = self._slice(value, op, op.results[0].type)

    def _compute(self, op: Any) -> None:
        *operations, terminator = op.regions[0].blocks[0].operations
        for nested in operations:
            for operand in nested.operation.operands:
                self._allocated(operand)
            clone = clone_mapped(nested, self.values)
            if nested.operation.name == "linalg.fill" and self._lasts(nested):
                clone.attributes[LASTING] = ir.UnitAttr.get()
        for result, value in zip(op.results, terminator.operands, strict=True):
            self.values[result] = self.values[value]
        made = self.values[op.results[0]].owner.operation
        if "reduction_block" in op.attributes:
            made.attributes[REDUCTION_BLOCK] = op.attributes["reduction_block"]
        if self._beside:
            made.attributes[BESIDE] = ir.DictAttr.get(self._beside)
            self._beside = {}

    def _allocate(self, op: Any) -> None:
        """Remember what the next computation has beside its tiles."""
        if is_beside(op):
            self._beside[op.attributes["role"].value] = op.attributes["place"]

    def _lasts(self, fill: Any) -> bool:
        """Whether a fill is the border of a window that lasts from tile to tile."""
        into = fill.operands[1]
        inside = isinstance(into, ir.BlockArgument)
        return not inside and "lasting" in into.owner.operation.attributes

    def _allocated(self, tile: Any) -> None:
        """Make an allocation where something computes into it first.

        It is a part of the destination if it is stored.
        """
        if tile in self.values or isinstance(tile, ir.BlockArgument):
            return
        if tile.owner.operation.name != "tile_graph.allocate":
            return
        store = self._stored.get(tile)
        if store is None:
            made = tensor.EmptyOp(list(tile.type.shape), tile.type.element_type).result
        else:
            destination = self._destinations[store.attributes["result"].value]
            made = self._slice(destination, store, tile.type)
        self.values[tile] = made

    def _blocks(self, op: Any) -> None:
        bounds = [self.values[value] for value in op.operands]
        loop = scf.ForOp(*bounds[:3], bounds[3:])
        old = op.regions[0].blocks[0]
        for before, after in zip(old.arguments, loop.body.arguments, strict=True):
            self.values[before] = after
        with ir.InsertionPoint(loop.body):
            self.lower(old)
        for before, after in zip(op.results, loop.results, strict=True):
            self.values[before] = after

    def _slice(self, value: Any, op: Any, type_: Any) -> Any:
        """The region of a load or store; the tensor itself if that is all of it."""
        if list(type_.shape) == list(value.type.shape):
            return value
        return extract_slice(value, *self._region(op), list(type_.shape))

    def _region(self, op: Any) -> tuple[list[Any], list[int]]:
        """Offsets, numbers or values, and sizes."""
        map_ = op.attributes["offsets"].value
        first = len(op.operands) - map_.n_dims
        positions = [self.values[op.operands[first + i]] for i in range(map_.n_dims)]
        offsets = [_offset(expression, positions) for expression in map_.results]
        return offsets, [size.value for size in op.attributes["sizes"]]


def _offset(expression: Any, positions: list[Any]) -> Any:
    """An offset as a number or value, from those positions that it depends on."""
    if isinstance(expression, ir.AffineConstantExpr):
        return expression.value
    if isinstance(expression, ir.AffineDimExpr):
        return positions[expression.position]
    used = sorted(dims_of(expression))
    dims = [ir.AffineExpr.get_constant(0)] * len(positions)
    for number, dim in enumerate(used):
        dims[dim] = ir.AffineExpr.get_dim(number)
    renumbered = expression.compose(ir.AffineMap.get(len(used), 0, dims))
    map_ = ir.AffineMap.get(len(used), 0, [renumbered])
    return affine.AffineApplyOp(map_, [positions[dim] for dim in used]).result


_LOWERINGS: dict[str, Callable[[_TiledBody, Any], None]] = {
    "gpu.yield": _TiledBody._nothing,
    "scf.for": _TiledBody._blocks,
    "tile_graph.allocate": _TiledBody._allocate,
    "tile_graph.barrier": _TiledBody._nothing,
    "tile_graph.compute": _TiledBody._compute,
    "tile_graph.load": _TiledBody._load,
    "tile_graph.release": _TiledBody._nothing,
    "tile_graph.store": _TiledBody._nothing,
}
