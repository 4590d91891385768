"""Owns which elementwise operations take other dimensions, and building them anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magweld.bindings import ir, linalg, tensor
from magweld.passes.analysis.operator_model import is_rematerialised
from magweld.passes.ir.constants import filled_with
from magweld.passes.ir.linalg_builder import iterator_array, map_array
from magweld.passes.ir.tensor_reshapes import collapse, expand

Groups = list[list[int]]


def on_split_dimensions(
    producer: linalg.GenericOp, groups: Groups, shape: list[int]
) -> Any:
    """Return an elementwise operation on dimensions that are split.

    Args:
        producer: The operation.
        groups: What each dimension is split into.
        shape: Of the result.
    """
    maps = [attr.value for attr in producer.indexing_maps]
    operands = [
        _expanded(value, map_, groups, shape)
        for value, map_ in zip(producer.inputs, maps[:-1], strict=True)
    ]
    wider = [
        ir.AffineMap.get(
            len(shape),
            0,
            [
                ir.AffineDimExpr.get(dim)
                for expr in map_.results
                for dim in groups[expr.position]
            ],
        )
        for map_ in maps
    ]
    return rebuild(producer, operands, wider, shape)


def has_whole_groups(map_: Any, groups: Groups) -> bool:
    """Whether an operand has all dimensions of a group or none, one where it has some.

    A part of what all loops walk that has dimensions to be joined would need a reshape
    of its own.
    """
    dims = [expr.position for expr in map_.results]
    if len(dims) == map_.n_dims:
        return True
    kept = [group for group in groups if any(dim in dims for dim in group)]
    return all(len(group) == 1 for group in kept)


def on_joined_dimensions(
    producer: linalg.GenericOp,
    groups: Groups,
    shape: list[int],
    join: Callable[[Any, Groups], Any] = collapse,
) -> Any:
    """Return an elementwise operation on dimensions that are joined.

    Args:
        producer: The operation, whose operands have whole groups.
        groups: The dimensions of each one that is made.
        shape: Of the result.
        join: Returns an operand that has all dimensions on joined ones.
    """
    maps = [attr.value for attr in producer.indexing_maps]
    operands = [
        join(value, groups) if len(map_.results) == map_.n_dims else value
        for value, map_ in zip(producer.inputs, maps[:-1], strict=True)
    ]
    number = {dim: joined for joined, dims in enumerate(groups) for dim in dims}
    joined_maps = [
        ir.AffineMap.get(
            len(groups),
            0,
            [
                ir.AffineDimExpr.get(dim)
                for dim in dict.fromkeys(number[e.position] for e in map_.results)
            ],
        )
        for map_ in maps
    ]
    return rebuild(producer, operands, joined_maps, shape)


def is_elementwise(op: Any) -> bool:
    """Return whether an operation has results whose dimensions can be split.

    All loops are parallel, one result is written in order, operands are projections.
    """
    if not isinstance(op, linalg.GenericOp):
        return False
    if len(op.results) != 1 or not has_plain_init(op):
        return False
    maps = [attr.value for attr in op.indexing_maps]
    dims = range(maps[-1].n_dims)
    if maps[-1] != ir.AffineMap.get_identity(maps[-1].n_dims) or not dims:
        return False
    names = {o.operation.name for o in op.regions[0].blocks[0].operations}
    if "linalg.index" in names:
        return False  # numbers of the old loops
    return all(
        isinstance(expr, ir.AffineDimExpr) for map_ in maps for expr in map_.results
    ) and all(_is_rising(map_) for map_ in maps)


def has_plain_init(op: linalg.GenericOp) -> bool:
    """Return whether what the result starts from can be made in another shape."""
    if not is_rematerialised(op.outputs[0]):
        return False
    return not _reads_init(op) or filled_with(op.outputs[0]) is not None


def _reads_init(op: linalg.GenericOp) -> bool:
    *_, init = op.regions[0].blocks[0].arguments
    return any(True for _ in init.uses)


def _is_rising(map_: Any) -> bool:
    positions = [expr.position for expr in map_.results]
    return positions == sorted(set(positions))


def _expanded(value: Any, map_: Any, groups: Groups, shape: list[int]) -> Any:
    """Split the dimensions of an operand as those of the result are split."""
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    reassociation: Groups = []
    sizes: list[int] = []
    for expr in map_.results:
        group = groups[expr.position]
        start = len(sizes)
        reassociation.append(list(range(start, start + len(group))))
        sizes.extend(shape[dim] for dim in group)
    if sizes == list(ir.RankedTensorType(value.type).shape):
        return value
    return expand(value, sizes, reassociation)


def rebuild(
    op: linalg.GenericOp, operands: list[Any], maps: list[Any], shape: list[int]
) -> Any:
    """Return an elementwise operation on other operands, with a result of a shape.

    Its body gets the same from the new result as it did from the old one.
    """
    element = ir.RankedTensorType(op.results[0].type).element_type
    destination = tensor.EmptyOp(shape, element).result
    start = filled_with(op.outputs[0])
    if start is not None and _reads_init(op):
        destination = linalg.fill(start, outs=[destination])
    clone = op.operation.clone()
    for position, value in enumerate([*operands, destination]):
        clone.operands[position] = value
    clone.attributes["indexing_maps"] = map_array(maps)
    clone.attributes["iterator_types"] = iterator_array(len(shape))
    clone.results[0].set_type(ir.RankedTensorType.get(shape, element))
    return clone
