"""Owns the pass that makes the loop of a short reduction the outermost one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.passes.analysis.elementwise import has_plain_init, rebuild
from magweld.passes.analysis.index_maps import is_projection
from magweld.passes.analysis.long_reductions import Reduction, reduction_of
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.linalg_builder import map_array
from magweld.passes.ir.utils import operations_of, users_of

# Elements of one reduction at most, and of the innermost loop of its result at least:
# as many as vectors have lanes.
_LANES = 8


@dataclass(frozen=True)
class InterchangeShortReductions(FunctionPass):
    """Make the innermost loop of operands the outermost one if it is reduced and short.

    ```mlir
    %d = linalg.generic {subf} ins(%x : tensor<300x1x2xf32>, %y : tensor<1x300x2xf32>)
        -> tensor<300x300x2xf32>
    %r = linalg.generic {(i, j, c) -> (i, j, c), (i, j)} ins(%d) -> tensor<300x300xf32>
    ```
    becomes
    ```mlir
    %d = linalg.generic {(c, i, j) -> (i, 0, c), (0, j, c), (c, i, j)} ins(%x, %y)
        -> tensor<2x300x300xf32>
    %r = linalg.generic {(i, j, c) -> (c, i, j), (i, j)} ins(%d) -> tensor<300x300xf32>
    ```
    so that the operators on elements before a reduction have the innermost loop that
    its result has, which fills vectors. Operators whose results something else reads as
    well stay as they are. For CPUs; threads of GPUs have no lanes to fill.
    """

    name: ClassVar[str] = "interchange-short-reductions"

    def run_on_function(self, function: Any) -> None:
        """Rewrite the reductions of a function and what they read."""
        for op in operations_of(function.operation, linalg.GenericOp):
            reduction = reduction_of(op)
            if reduction is not None and _is_short(reduction):
                _interchange(op, *reduction.reduced)


def _is_short(reduction: Reduction) -> bool:
    if len(reduction.reduced) != 1 or not reduction.maps[-1].results:
        return False
    *_, innermost = reduction.maps[-1].results
    if not isinstance(innermost, ir.AffineDimExpr):
        return False
    (loop,) = reduction.reduced
    is_wide = reduction.extents[innermost.position] >= _LANES
    return is_wide and 2 <= reduction.extents[loop] <= _LANES


def _interchange(op: linalg.GenericOp, loop: int) -> None:
    chain = _operands_by_last_loop(op, loop)
    if not chain:
        return
    moved: dict[Any, Any] = {}
    with ir.InsertionPoint(op), op.location:
        for member in reversed(chain):
            moved[member.results[0]] = _rebuilt(member, moved)
        made = op.operation.clone()
    maps = [attribute.value for attribute in op.indexing_maps]
    for number, value in enumerate(op.inputs):
        if value in moved:
            made.operands[number] = moved[value]
            maps[number] = _last_first(maps[number])
    made.attributes["indexing_maps"] = map_array(maps)
    op.results[0].replace_all_uses_with(made.results[0])
    for old in (op, *chain):
        old.operation.erase()


def _operands_by_last_loop(op: linalg.GenericOp, loop: int) -> list[Any]:
    """Return operations on elements that an operation alone reads, readers first.

    Each is indexed last by `loop`, or by the last loop of another one of them.
    """
    last = {op.operation: loop}
    chain: list[Any] = []
    pending = [op]
    while pending:
        for value in pending.pop().inputs:
            producer = defining_op(value)
            if producer is None or producer.operation in last:
                continue
            if _takes_any_order(producer) and all(
                user.operation in last and _reads_last(user, value, last)
                for user in users_of(value)
            ):
                last[producer.operation] = len(producer.results[0].type.shape) - 1
                chain.append(producer)
                pending.append(producer)
    return chain


def _takes_any_order(op: Any) -> bool:
    """Whether an operation computes each element of one tensor from those of others."""
    if not isinstance(op, linalg.GenericOp) or len(op.results) != 1:
        return False
    *reads, written = [attribute.value for attribute in op.indexing_maps]
    is_whole = written == ir.AffineMap.get_identity(written.n_dims) and written.results
    body = op.regions[0].blocks[0].operations
    return bool(
        is_whole
        and has_plain_init(op)
        and op.results[0].type.has_static_shape
        and all(inner.operation.name != "linalg.index" for inner in body)
        and all(map(is_projection, reads))
    )


def _reads_last(user: Any, value: Any, last: Mapping[Any, int]) -> bool:
    loop = ir.AffineExpr.get_dim(last[user.operation])
    return all(
        operand != value or attribute.value.results[-1] == loop
        for operand, attribute in zip(user.inputs, user.indexing_maps, strict=False)
    )


def _rebuilt(op: linalg.GenericOp, moved: Mapping[Any, Any]) -> Any:
    """Return the result of an operation with its last dimension as the first one."""
    maps = [attribute.value for attribute in op.indexing_maps]
    loops = maps[-1].n_dims
    operands, reads = [], []
    for value, map_ in zip(op.inputs, maps[:-1], strict=True):
        renamed = [_renamed(expr, loops) for expr in map_.results]
        read = ir.AffineMap.get(loops, 0, renamed)
        operands.append(moved.get(value, value))
        reads.append(_last_first(read) if value in moved else read)
    *outer, inner = ir.RankedTensorType(op.results[0].type).shape
    identity = ir.AffineMap.get_identity(loops)
    return rebuild(op, operands, [*reads, identity], [inner, *outer]).results[0]


def _renamed(expr: Any, loops: int) -> Any:
    if isinstance(expr, ir.AffineDimExpr):
        return ir.AffineExpr.get_dim((expr.position + 1) % loops)
    return expr


def _last_first(map_: Any) -> Any:
    *outer, inner = map_.results
    return ir.AffineMap.get(map_.n_dims, 0, [inner, *outer])
