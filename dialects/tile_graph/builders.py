"""Owns the functions that make ops of this dialect at the current insertion point.

Builders that open a region give it one empty block; fill it under
`ir.InsertionPoint(op.body.blocks[0])` and end it with `yield_values`. Location and
insertion point come from the caller's `with`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from magweld.bindings import gpu, ir
from magweld.dialects.integers import i64, i64s
from magweld.dialects.tile_graph.attributes import PlaceAttr, tile_attribute
from magweld.dialects.tile_graph.dialect import Operation, OpT
from magweld.dialects.tile_graph.grid import grid_parts
from magweld.dialects.tile_graph.ops import (
    AllocateOp,
    BarrierOp,
    ComputeOp,
    ConnectOp,
    ForTilesOp,
    LoadOp,
    OperatorOp,
    ReleaseOp,
    ShiftOp,
    StoreOp,
    SubgraphOp,
)
from magweld.dialects.tile_graph.roles import Role
from magweld.dialects.tile_graph.structure import parallel_extents, root_operation
from magweld.dialects.tile_graph.view import operators_of

# More cannot be registered, see `TileGraphDialect`.
MOST_RESULTS = 2


def build_operator(op_name: str, result_types: Sequence[ir.Type]) -> OperatorOp:
    """Make an operator, its block empty.

    Raises:
        ValueError: There are neither one nor two results.
    """
    attributes = {"op_name": ir.StringAttr.get(op_name)}
    return _with_block(OperatorOp, result_types, attributes)


def build_connect(value: ir.Value, level: str) -> ConnectOp:
    """Make an edge from `value` at the named memory level."""
    return ConnectOp(value.type, value, ir.StringAttr.get(level))


def build_shift(value: ir.Value, offsets: Sequence[int]) -> ShiftOp:
    """Make `value` from the element at some offsets on, one for each dimension."""
    return ShiftOp(value.type, value, i64s(offsets))


def build_subgraph(
    subgraph_name: str,
    result_types: Sequence[ir.Type],
    *,
    level: str,
    implementation: str | None = None,
) -> SubgraphOp:
    """Make a subgraph, its block empty; the plan's attributes are set later.

    Args:
        subgraph_name: Name in reports and of the kernel.
        result_types: Types of the results, one or two.
        level: Level at which reuse tiles are kept.
        implementation: "generated", "library", or None if that is not decided.

    Raises:
        ValueError: There are neither one nor two results.
    """
    attributes = {
        "subgraph_name": ir.StringAttr.get(subgraph_name),
        "level": ir.StringAttr.get(level),
    }
    if implementation is not None:
        attributes["implementation"] = ir.StringAttr.get(implementation)
    return _with_block(SubgraphOp, result_types, attributes)


def set_tile(subgraph: ir.Operation, sizes: Sequence[int]) -> None:
    """Write the tile of a subgraph, and whether some size does not divide its extent.

    Args:
        subgraph: A subgraph with its operators.
        sizes: One for each parallel dimension of the last of them.
    """
    subgraph.attributes["tile"] = tile_attribute(sizes)
    extents = parallel_extents(root_operation(operators_of(subgraph)[-1]))
    if any(extent % size for extent, size in zip(extents, sizes, strict=True)):
        subgraph.attributes["ragged"] = ir.UnitAttr.get()


@dataclass(frozen=True)
class Region:
    """A region of a tensor, and what it costs to move it.

    Attributes:
        positions: Values of type index that it depends on.
        offsets: Map from these to where it begins.
        sizes: Along each dimension of the tensor.
        moved: Bytes in whole transactions with the outermost level.
        transactions: How many these are.
    """

    positions: tuple[ir.Value, ...]
    offsets: ir.AffineMap
    sizes: tuple[int, ...]
    moved: int
    transactions: int

    def attributes(self) -> dict[str, ir.Attribute]:
        """Return what describes it on an op."""
        return {
            "offsets": ir.AffineMapAttr.get(self.offsets),
            "sizes": i64s(self.sizes),
            "moved": i64(self.moved),
            "transactions": i64(self.transactions),
        }


def build_for_tiles(
    result_types: Sequence[ir.Type],
    extents: Sequence[int],
    steps: Sequence[int],
    attributes: Mapping[str, ir.Attribute],
    runtime: Sequence[int] = (),
    *,
    overlapping: bool = False,
) -> ForTilesOp:
    """Make a plan whose blocks have an argument for each loop, and nothing else.

    There is one for each part of the grid.

    Args:
        result_types: Types of the results, one or two.
        extents: Of the loops over tiles.
        steps: Of the same loops.
        attributes: The others.
        runtime: Loops whose extents a call tells.
        overlapping: Whether all tiles have the size of their steps.
    """
    loops = {"extents": i64s(extents), "steps": i64s(steps)}
    if runtime:
        loops["runtime"] = i64s(runtime)
    if overlapping:
        loops["overlapping"] = ir.UnitAttr.get()
    index = [ir.IndexType.get()] * len(extents)
    plan = _with_block(ForTilesOp, result_types, {**attributes, **loops}, index)
    blocks = plan.operation.regions[0].blocks
    for _ in grid_parts(extents, steps, runtime, overlapping=overlapping)[1:]:
        blocks.append(*index, arg_locs=[plan.operation.location] * len(index))
    return plan


def build_allocate(
    type_: ir.Type,
    place: PlaceAttr | None = None,
    role: Role | None = None,
    *,
    lasting: bool = False,
) -> ir.Value:
    """Make a tile without contents and return it.

    Args:
        type_: Its type.
        place: Where it lies.
        role: What it is for, if it is no plain tile.
        lasting: Whether a window keeps its border from tile to tile.
    """
    attributes: dict[str, ir.Attribute] = {}
    if role is not None:
        attributes["role"] = ir.StringAttr.get(role.value)
    if lasting:
        attributes["lasting"] = ir.UnitAttr.get()
    return _made(AllocateOp, [], _placed(attributes, place), [type_])


def build_load(
    tensor: ir.Value, region: Region, type_: ir.Type, place: PlaceAttr | None = None
) -> ir.Value:
    """Make a tile with the contents of a region of a tensor and return it."""
    operands = [tensor, *region.positions]
    return _made(LoadOp, operands, _placed(region.attributes(), place), [type_])


def build_compute(
    op_name: str, result_types: Sequence[ir.Type], reduction_block: int | None = None
) -> ComputeOp:
    """Make the computation of a tile, its block empty."""
    attributes: dict[str, ir.Attribute] = {"op_name": ir.StringAttr.get(op_name)}
    if reduction_block is not None:
        attributes["reduction_block"] = i64(reduction_block)
    return _with_block(ComputeOp, result_types, attributes)


def build_store(tile: ir.Value, into: ir.Value, result: int, region: Region) -> None:
    """Make the storing of a tile that was computed into an allocation."""
    attributes = {**region.attributes(), "result": i64(result)}
    _create(StoreOp, [tile, into, *region.positions], attributes, [])


def build_release(tile: ir.Value) -> None:
    """Free the place of a tile."""
    _create(ReleaseOp, [tile], {}, [])


def build_barrier() -> None:
    """Let all units that work on a tile wait for each other."""
    _create(BarrierOp, [], {}, [])


def yield_values(values: Sequence[ir.Value]) -> ir.OpView:
    """End the current block with the results of its parent, one or two."""
    terminator: ir.OpView = gpu.YieldOp(list(values))
    return terminator


def _with_block(
    kind: type[OpT],
    result_types: Sequence[ir.Type],
    attributes: Mapping[str, ir.Attribute],
    arguments: Sequence[ir.Type] = (),
) -> OpT:
    if not 1 <= len(result_types) <= MOST_RESULTS:
        raise ValueError(f"expected one or two results, got {len(result_types)}")
    operation = _create(kind, [], attributes, result_types, regions=1)
    places = [operation.location] * len(arguments)
    ir.Block.create_at_start(operation.regions[0], list(arguments), places)
    view: OpT = operation.opview
    return view


def _create(
    kind: type[Operation],
    operands: Sequence[ir.Value],
    attributes: Mapping[str, ir.Attribute],
    result_types: Sequence[ir.Type],
    regions: int = 0,
) -> ir.Operation:
    # The constructors of `ext` would add segment sizes, see `read_by_position`.
    return ir.Operation.create(
        kind.OPERATION_NAME,
        results=list(result_types),
        operands=list(operands),
        attributes=dict(attributes),
        regions=regions,
    )


def _made(
    kind: type[Operation],
    operands: Sequence[ir.Value],
    attributes: Mapping[str, ir.Attribute],
    result_types: Sequence[ir.Type],
) -> ir.Value:
    return _create(kind, operands, attributes, result_types).results[0]


def _placed(
    attributes: Mapping[str, ir.Attribute], place: PlaceAttr | None
) -> dict[str, ir.Attribute]:
    return {**attributes, **({} if place is None else {"place": place})}
