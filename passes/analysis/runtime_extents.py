"""Owns extents that a call tells: what stands for them, which plans may have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from magweld.artifact import StandIns
from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    grid_parts,
    has_overlapping_tiles,
    runtime_loop,
)
from magweld.passes.analysis.index_maps import dims_of

# On a module: the primes that stand for sizes of the call.
STAND_INS = "magweld.stand_ins"


def stand_ins_of(op: Any) -> StandIns:
    """Return what stands for sizes of the call in the module around an operation."""
    module = op.operation
    while module.parent is not None:
        module = module.parent.operation
    if STAND_INS not in module.attributes:
        return StandIns()
    return StandIns(tuple(ir.DenseI64ArrayAttr(module.attributes[STAND_INS])))


def runtime_type(type_: Any, stand_ins: StandIns) -> Any:
    """Return a type of tensors in which extents that a call tells are dynamic."""
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [dynamic if stand_ins.is_runtime(n) else n for n in type_.shape]
    return ir.RankedTensorType.get(shape, type_.element_type)


def parts_runtime_extents(
    op: Any, groups: Sequence[Sequence[int]], shape: Sequence[int]
) -> bool:
    """Whether a dimension is split into several whose extents a call tells.

    One loop runs along it.

    Args:
        op: An operation of the module.
        groups: What each dimension is split into.
        shape: Of what is split.
    """
    stand_ins = stand_ins_of(op)
    told = {dim for dim, extent in enumerate(shape) if stand_ins.is_runtime(extent)}
    return any(len(told & {*group}) > 1 for group in groups)


def runtime_violations(plan: Any, stand_ins: StandIns) -> Iterator[str]:
    """Yield why the code of a plan would depend on extents that a call tells.

    Each tile of the loop along such an extent has to have the rows of its own of every
    tensor that has the extent, and these have to lie one after another: the strides
    are constants then, and no row is outside.

    Args:
        plan: A `tile_graph.for_tiles`.
        stand_ins: What stands for sizes of the call.
    """
    loops = runtime_loop(plan)
    extents = [extent.value for extent in plan.attributes["extents"]]
    steps = [step.value for step in plan.attributes["steps"]]
    overlapping = has_overlapping_tiles(plan)
    parts = grid_parts(extents, steps, loops, overlapping=overlapping)
    for part, block in zip(parts, plan.operation.regions[0].blocks, strict=True):
        for op in _nested(block):
            if op.name in ("tile_graph.load", "tile_graph.store"):
                type_ = _accessed(plan, op)
                rows = None
                if loops:
                    variable = block.arguments[loops[0]]
                    step = part[loops[0]].step
                    rows = (variable, extents[loops[0]], step)
                yield from _access_violations(op, type_, rows, stand_ins)
                continue
            for value in op.operands:
                if _is_outside(value, plan) and _runtime_dims(value.type, stand_ins):
                    yield f"'{op.name}' reads all of {value.type}"


def _access_violations(
    op: Any, type_: Any, rows: tuple[Any, int, int] | None, stand_ins: StandIns
) -> Iterator[str]:
    """Yield what is wrong with a load or store.

    Args:
        op: The load or store.
        type_: Of the whole tensor.
        rows: Position of the tile along the extent that a call tells, that extent and
            the size of the tile; None if the plan has no such loop.
        stand_ins: What stands for sizes of the call.
    """
    dims = _runtime_dims(type_, stand_ins)
    offsets = list(op.attributes["offsets"].value.results)
    first = len(op.operands) - op.attributes["offsets"].value.n_dims
    variables = list(op.operands)[first:]
    if not dims:
        moving = {n for n, v in enumerate(variables) if rows and v == rows[0]}
        if any(moving & dims_of(offset) for offset in offsets):
            yield f"a part of {type_} depends on an extent that a call tells"
        return
    if rows is None:
        yield f"no loop over tiles runs along an extent that a call tells, of {type_}"
        return
    variable, extent, step = rows
    shape = list(type_.shape)
    (dim, *others) = dims
    if others or any(outer != 1 for outer in shape[:dim]):
        yield f"strides of {type_} depend on an extent that a call tells"
        return
    factor, rest = divmod(shape[dim], extent)
    if rest or variable not in variables:
        yield f"{type_} is not split along the extent {extent}, which a call tells"
        return
    number = variables.index(variable)
    along = ir.AffineExpr.get_dim(number)
    wanted = along if factor == 1 else ir.AffineExpr.get_mul(along, _number(factor))
    size = op.attributes["sizes"][dim].value
    if offsets[dim] != wanted or size != factor * step:
        yield f"a tile reads or writes other rows of {type_} than its own"
    elsewhere = [o for i, o in enumerate(offsets) if i != dim]
    if any(number in dims_of(offset) for offset in elsewhere):
        yield f"a part of {type_} depends on an extent that a call tells"


def _number(value: int) -> Any:
    return ir.AffineExpr.get_constant(value)


def _accessed(plan: Any, op: Any) -> Any:
    """Return the type of the whole tensor that a load or store is of."""
    if op.name == "tile_graph.load":
        return op.operands[0].type
    return plan.operation.results[op.attributes["result"].value].type


def _runtime_dims(type_: Any, stand_ins: StandIns) -> list[int]:
    if not isinstance(type_, ir.RankedTensorType):
        return []
    return [i for i, n in enumerate(type_.shape) if stand_ins.is_runtime(n)]


def _nested(block: Any) -> Iterator[Any]:
    for op in block.operations:
        yield op.operation
        for region in op.operation.regions:
            for inner in region.blocks:
                yield from _nested(inner)


def _is_outside(value: Any, plan: Any) -> bool:
    """Whether a value is made outside of a plan."""
    is_argument = isinstance(value, ir.BlockArgument)
    owner = value.owner.owner if is_argument else value.owner.operation.parent
    while owner is not None:
        if owner.operation == plan.operation:
            return False
        owner = owner.operation.parent
    return True
