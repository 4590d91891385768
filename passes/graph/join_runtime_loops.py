"""Owns the pass that joins loops along neighbouring extents that a call tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.analysis.index_maps import dims_of, loop_extents
from magweld.passes.analysis.runtime_extents import stand_ins_of
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op, nested_deeply
from magweld.passes.ir.constants import filled_with
from magweld.passes.ir.linalg_builder import map_array
from magweld.passes.ir.tensor_reshapes import Groups, collapse, expand


def join(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Compute by one loop what neighbouring loops along such extents compute."""
    maps = [attr.value for attr in op.indexing_maps]
    groups = _loop_groups(op, maps)
    if _is_plain(groups):
        return False
    dims = [_dim_groups(map_, groups) for map_ in maps]
    count = len(op.inputs)
    operands = [
        *map(_joined, op.inputs, dims[:count]),
        *map(_joined_init, op.outputs, dims[count:]),
    ]
    clone = op.operation.clone()
    for position, value in enumerate(operands):
        clone.operands[position] = value
    clone.attributes["indexing_maps"] = map_array(
        [_joined_map(map_, groups) for map_ in maps]
    )
    for index in _indices(clone):
        old = ir.IntegerAttr(index.attributes["dim"])
        index.attributes["dim"] = ir.IntegerAttr.get(
            old.type, groups.index([old.value])
        )
    kinds = list(op.iterator_types)
    clone.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[g[0]] for g in groups])
    results = []
    for old, new, init, own in zip(
        op.results, clone.results, operands[count:], dims[count:], strict=True
    ):
        new.set_type(init.type)
        shape = list(ir.RankedTensorType(old.type).shape)
        results.append(new if _is_plain(own) else expand(new, shape, own))
    rewriter.replace_op(op.operation, results)
    return True


def _indices(op: Any) -> list[Any]:
    """Return the operations inside that give the number of an iteration."""
    return [inner for inner in nested_deeply(op) if inner.name == "linalg.index"]


def _loop_groups(op: linalg.GenericOp, maps: Sequence[Any]) -> Groups:
    """Return the loops in their order, those that become one in one group."""
    types = [value.type for value in op.operands]
    stand_ins = stand_ins_of(op)
    if not stand_ins or not all(isinstance(t, ir.RankedTensorType) for t in types):
        return []
    extents = loop_extents(maps, [tuple(type_.shape) for type_ in types])
    if extents is None:
        return []
    numbered = {ir.IntegerAttr(n.attributes["dim"]).value for n in _indices(op)}
    joinable = [
        stand_ins.is_runtime(extent) and "parallel" in str(kind) and n not in numbered
        for n, (extent, kind) in enumerate(zip(extents, op.iterator_types, strict=True))
    ]
    groups: list[list[int]] = []
    for loop in range(len(extents)):
        pair = (loop - 1, loop)
        if (
            loop
            and all(joinable[one] for one in pair)
            and all(_walks_as_one(map_, *pair) for map_ in maps)
        ):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    return groups


def _walks_as_one(map_: Any, first: int, second: int) -> bool:
    """Whether an operand has two loops as dimensions side by side, or neither."""
    places = [
        dim for dim, expr in enumerate(map_.results) if dims_of(expr) & {first, second}
    ]
    exprs = [map_.results[dim] for dim in places]
    if not all(isinstance(expr, ir.AffineDimExpr) for expr in exprs):
        return False
    walked = [(dim, expr.position) for dim, expr in zip(places, exprs, strict=True)]
    beside = [(places[0], first), (places[0] + 1, second)] if places else []
    return walked == beside


def _dim_groups(map_: Any, groups: Groups) -> Groups:
    """Return the dimensions of an operand, joined loops walk those of one group."""
    joined = [group for group in groups if len(group) > 1]
    inner = {loop for group in joined for loop in group[1:]}
    found: list[list[int]] = []
    for dim, expr in enumerate(map_.results):
        if isinstance(expr, ir.AffineDimExpr) and expr.position in inner:
            found[-1].append(dim)
        else:
            found.append([dim])
    return found


def _joined_map(map_: Any, groups: Groups) -> Any:
    """Return an indexing map over the joined loops."""
    dims = [ir.AffineExpr.get_dim(n) for n, group in enumerate(groups) for _ in group]
    renumbered = ir.AffineMap.get(len(groups), 0, dims)
    firsts = [map_.results[group[0]] for group in _dim_groups(map_, groups)]
    exprs = [expr.compose(renumbered) for expr in firsts]
    return ir.AffineMap.get(len(groups), 0, exprs)


def _is_plain(groups: Groups) -> bool:
    return all(len(group) == 1 for group in groups)


def _joined(value: Any, groups: Groups) -> Any:
    return value if _is_plain(groups) else collapse(value, groups)


def _joined_init(value: Any, groups: Groups) -> Any:
    """Return what a result starts from, on joined dimensions."""
    start, is_empty = filled_with(value), isinstance(defining_op(value), tensor.EmptyOp)
    if _is_plain(groups) or (start is None and not is_empty):
        return _joined(value, groups)
    type_ = ir.RankedTensorType(value.type)
    shape = [prod(type_.shape[dim] for dim in group) for group in groups]
    empty = tensor.EmptyOp(shape, type_.element_type).result
    return empty if start is None else linalg.fill(start, outs=[empty])


@dataclass(frozen=True)
class JoinRuntimeLoops(PatternPass):
    """Join parallel loops along neighbouring extents that a call tells.

    In a module with `magweld.stand_ins`, here 41 and 43,
    ```mlir
    %s = linalg.generic {(b, l, w) -> (b, l, w), (w), (b, l, w)}
        ins(%x, %bias : tensor<41x43x64xf32>, tensor<64xf32>)
    ```
    becomes the operation on `tensor<1763x64xf32>` between reshapes, as products of
    flattened rows are already: one loop over tiles runs along both extents, and one
    extent alone is outermost in memory. Every operand has to have the dimensions of
    both loops side by side, or neither, and `linalg.index` may not ask for their
    numbers. Other modules stay as they are.
    """

    name: ClassVar[str] = "join-runtime-loops"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the only pattern."""
        return ((linalg.GenericOp, join),)
