"""Owns the pass that packs operands which vectors would gather again and again."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.analysis.index_maps import (
    is_projection,
    loop_extents,
    loops_of,
)
from magweld.passes.analysis.operator_model import is_rematerialised
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.linalg_builder import build_generic, map_array
from magweld.passes.ir.slices import static_slice
from magweld.passes.ir.utils import operations_of
from magweld.passes.tiling.loop_nests import PACKED_READS

# Elements of the innermost loop that fill a vector, and of reductions that are not
# vectorised themselves.
_LANES = 8
# Iterations of an operation below which nothing is worth a further one.
_LEAST_ITERATIONS = 1 << 14

_Packed = MutableMapping[tuple[Any, int], Any]


@dataclass(frozen=True)
class PackStridedOperands(FunctionPass):
    """Copy operands that are read often, with a stride, along the innermost loop.

    ```mlir
    %d = linalg.generic {(c, i, j) -> (i, c), (j, c), (c, i, j)}
        ins(%x, %x : tensor<300x2xf32>, tensor<300x2xf32>) -> tensor<2x300x300xf32>
    ```
    becomes
    ```mlir
    %p = linalg.generic {(c, j) -> (j, c), (c, j)} ins(%x) -> tensor<2x300xf32>
    %d = linalg.generic {(c, i, j) -> (i, c), (c, j), (c, i, j)} ins(%x, %p)
    ```
    Vectors run along the innermost loop of a result: the first form takes each of
    their lanes from memory apart, for every `i`. Operations that are large enough are
    changed, and operands each element of which is read by eight iterations or more of
    the loops that do not index it. Contractions are not: their own code packs operands.
    For CPUs; GPUs read through caches that take strides.
    """

    name: ClassVar[str] = "pack-strided-operands"

    def run_on_function(self, function: Any) -> None:
        """Pack operands of the operations of a function; equal ones once."""
        packed: dict[tuple[Any, int], Any] = {}
        for op in operations_of(function.operation, linalg.GenericOp):
            lane, extents = _innermost(op)
            if lane >= 0:
                _pack_operands(op, lane, extents, packed)


def _innermost(op: linalg.GenericOp) -> tuple[int, tuple[int, ...]]:
    """Return the innermost loop of the result, -1 for a refusal, and all extents."""
    none = -1, ()
    types = [value.type for value in op.operands]
    if len(op.results) != 1 or linalg.isa_contraction_op(op.operation):
        return none
    if not all(
        isinstance(t, ir.RankedTensorType) and t.has_static_shape for t in types
    ):
        return none
    maps = [attribute.value for attribute in op.indexing_maps]
    extents = loop_extents(maps, [tuple(type_.shape) for type_ in types])
    if not extents or prod(extents) < _LEAST_ITERATIONS:
        return none
    *_, innermost = maps[-1].results or (None,)
    if not isinstance(innermost, ir.AffineDimExpr):
        return none
    # Iterations that read one element of the result are those that reduce to it.
    reduced, lane = _reads(maps[-1], extents), innermost.position
    return (lane, extents) if extents[lane] >= _LANES >= reduced else none


def _pack_operands(
    op: linalg.GenericOp, lane: int, extents: tuple[int, ...], packed: _Packed
) -> None:
    maps = [attribute.value for attribute in op.indexing_maps]
    for number, value in enumerate(list(op.inputs)):
        place = _strided_place(value, maps[number], lane)
        if place is None or _reads(maps[number], extents) < PACKED_READS:
            continue
        if (value, place) not in packed:
            packed[value, place] = _packed(value, place)
        op.operands[number] = packed[value, place]
        results = list(maps[number].results)
        moved = [*results[:place], *results[place + 1 :], results[place]]
        maps[number] = ir.AffineMap.get(maps[number].n_dims, 0, moved)
    op.attributes["indexing_maps"] = map_array(maps)


def _strided_place(value: Any, map_: Any, lane: int) -> int | None:
    """Return which dimension the loop indexes, if its elements lie apart."""
    if not is_projection(map_):
        return None
    loop = ir.AffineExpr.get_dim(lane)
    places = [place for place, expr in enumerate(map_.results) if expr == loop]
    if len(places) != 1 or is_rematerialised(value):
        return None
    return places[0] if _stride(value, places[0]) > 1 else None


def _stride(value: Any, place: int) -> int:
    """Return how many elements apart two of a dimension lie in memory."""
    part = static_slice(defining_op(value))
    shape = list(value.type.shape)
    if part is not None and len(part.kept) == len(shape):
        shape, place = list(part.source.type.shape), part.kept[place]
    return prod(shape[place + 1 :])


def _reads(map_: Any, extents: tuple[int, ...]) -> int:
    """Return how many iterations read one element."""
    return prod(e for loop, e in enumerate(extents) if loop not in loops_of(map_))


def _packed(value: Any, place: int) -> Any:
    """Copy a tensor, where it is made, with one dimension as the innermost one."""
    type_ = ir.RankedTensorType(value.type)
    order = [dim for dim in range(type_.rank) if dim != place] + [place]
    read = [ir.AffineExpr.get_dim(order.index(dim)) for dim in range(type_.rank)]
    maps = [
        ir.AffineMap.get(type_.rank, 0, read),
        ir.AffineMap.get_identity(type_.rank),
    ]
    producer = defining_op(value)
    here = (
        ir.InsertionPoint.at_block_begin(value.owner)
        if producer is None
        else ir.InsertionPoint.after(producer)
    )
    with here, value.location:
        shape = [type_.shape[dim] for dim in order]
        empty = tensor.EmptyOp(shape, type_.element_type).result
        copied = build_generic([value], [empty], maps, lambda values: values[:1])
    return copied.results[0]
