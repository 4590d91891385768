"""Owns the rewriting of a reduction into parts and the reduction of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from magweld.bindings import ir, linalg, tensor
from magweld.dialects.integers import i64
from magweld.passes.analysis.elementwise import is_elementwise, on_split_dimensions
from magweld.passes.analysis.long_reductions import Reduction
from magweld.passes.analysis.operator_model import is_rematerialised
from magweld.passes.ir.cloning import ValueMap, clone_mapped, defining_op
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.utils import groups_of
from magweld.passes.tiling.arithmetic import iteration_flops

PARTS = "magweld.parts"
# What is made once more for a second reader takes at most so many additions.
CHEAP = 4


def repeated(value: Any) -> Any | None:
    """Return the elementwise operation that is made anew to give a value in parts.

    None for what has no such operation, or an expensive one that others need too.
    """
    producer = defining_op(value)
    if producer is None or not is_elementwise(producer):
        return None
    readers = {use.owner.operation for use in value.uses}
    if len(readers) > 1 and iteration_flops(producer) > CHEAP:
        return None
    return producer


def operands_along(op: Any, maps: Any, loop: int) -> Iterator[tuple[Any, int]]:
    """Yield the inputs of an operation that vary along a loop, each with its dim."""
    for value, map_ in zip(op.operands[: len(maps) - 1], maps[:-1], strict=True):
        if is_rematerialised(value):
            continue
        for dim, expr in enumerate(map_.results):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == loop:
                yield value, dim


class Splitter:
    """Rewrites reductions of one function; what they share is made in parts once."""

    def __init__(self) -> None:
        """Make one that has rewritten nothing."""
        self._made: dict[tuple[Any, tuple[int, ...]], Any] = {}

    def split(self, reduction: Reduction, loop: int, parts: int) -> Any:
        """Return the result of a reduction, computed in two phases.

        Args:
            reduction: The reduction; both phases are built before it.
            loop: The loop of it that is cut.
            parts: Number of pieces, which divides the extent of the loop.
        """
        with ir.InsertionPoint(reduction.op), reduction.op.location:
            return _merged(reduction, self._partial(reduction, loop, parts))

    def _partial(self, reduction: Reduction, loop: int, parts: int) -> Any:
        rank = len(reduction.extents)
        inner = reduction.extents[loop] // parts
        operands = [
            self._operand(value, map_, loop, (parts, inner))
            for value, map_ in zip(
                reduction.op.operands, reduction.maps[:-1], strict=False
            )
        ]
        maps = [_with_parts(map_, loop) for map_ in reduction.maps[:-1]]
        result = _moved(reduction.maps[-1], 1)
        of_part = ir.AffineDimExpr.get(0)
        maps.append(ir.AffineMap.get(rank + 1, 0, [of_part, *result]))
        type_ = ir.RankedTensorType(reduction.op.results[0].type)
        empty = tensor.EmptyOp([parts, *type_.shape], type_.element_type).result
        init = linalg.fill(reduction.start, outs=[empty])
        source = reduction.op.regions[0].blocks[0]
        generic = build_generic(
            operands,
            [init],
            maps,
            partial(_clone_body, source),
            reduced=[number + 1 for number in reduction.reduced],
        )
        generic.attributes[PARTS] = i64(parts)
        return generic.results[0]

    def _operand(self, value: Any, map_: Any, loop: int, sizes: tuple[int, int]) -> Any:
        """Return an operand with the dimension of a loop cut in two."""
        shape: list[int] = []
        groups: list[list[int]] = []
        old = ir.RankedTensorType(value.type)
        for extent, expr in zip(old.shape, map_.results, strict=True):
            cut = isinstance(expr, ir.AffineDimExpr) and expr.position == loop
            new = sizes if cut else (extent,)
            groups.append(list(range(len(shape), len(shape) + len(new))))
            shape += new
        if shape == list(old.shape):
            return value
        type_ = ir.RankedTensorType.get(shape, old.element_type)
        expand = tensor.ExpandShapeOp(type_, value, groups, [], shape)
        return self._in_parts(expand)

    def _in_parts(self, expand: Any) -> Any:
        """Return what a reshape gives, made in parts as far as it is elementwise."""
        value, shape = expand.src, tuple(ir.RankedTensorType(expand.result.type).shape)
        key = (value, shape)
        if key not in self._made:
            self._made[key] = self._made_in_parts(expand)
        made = self._made[key]
        if made != expand.result:
            expand.result.replace_all_uses_with(made)
            expand.operation.erase()
        return made

    def _made_in_parts(self, expand: Any) -> Any:
        producer = repeated(expand.src)
        if producer is None:
            return expand.result
        old = list(producer.inputs)
        shape = list(ir.RankedTensorType(expand.result.type).shape)
        clone = on_split_dimensions(producer, groups_of(expand), shape)
        with ir.InsertionPoint(clone):
            for number, value in enumerate(old):
                operand = clone.operands[number]
                if operand != value:
                    self._in_parts(defining_op(operand))
        return clone.results[0]


def _moved(map_: Any, by: int) -> list[Any]:
    """The indices of a map whose loops come after others."""
    return [
        ir.AffineDimExpr.get(expr.position + by)
        if isinstance(expr, ir.AffineDimExpr)
        else expr
        for expr in map_.results
    ]


def _with_parts(map_: Any, loop: int) -> Any:
    """The map of an operand whose dimension of a loop is cut; parts are loop 0."""
    results: list[Any] = []
    for old, new in zip(map_.results, _moved(map_, 1), strict=True):
        cut = isinstance(old, ir.AffineDimExpr) and old.position == loop
        results += [ir.AffineDimExpr.get(0), new] if cut else [new]
    return ir.AffineMap.get(map_.n_dims + 1, 0, results)


def _clone_body(source: Any, arguments: Sequence[Any]) -> list[Any]:
    """Clone what a body computes; return what it yields."""
    values = ValueMap()
    for old, new in zip(source.arguments, arguments, strict=True):
        values[old] = new
    *operations, terminator = source.operations
    for op in operations:
        clone_mapped(op, values)
    return [values[value] for value in terminator.operands]


def _merged(reduction: Reduction, parts: Any) -> Any:
    """Merge what the parts gave, in their order, into the start of the whole."""
    rank = len(ir.RankedTensorType(parts.type).shape)
    init = reduction.op.operands[len(reduction.op.operands) - 1]
    loops = [ir.AffineDimExpr.get(loop) for loop in range(rank)]
    maps = [ir.AffineMap.get(rank, 0, loops), ir.AffineMap.get(rank, 0, loops[1:])]
    element = ir.RankedTensorType(parts.type).element_type

    def body(values: Sequence[Any]) -> Sequence[Any]:
        merge = ir.Operation.create(
            reduction.merge, results=[element], operands=list(values)
        )
        return [merge.results[0]]

    return build_generic([parts], [init], maps, body, reduced=[0]).results[0]
