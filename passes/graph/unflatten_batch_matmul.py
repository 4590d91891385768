"""Owns the pass that gives products of flattened batches their batch dims back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.analysis.elementwise import rebuild
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.constants import filled_with
from magweld.passes.ir.contractions import build_contraction
from magweld.passes.ir.tensor_reshapes import expand
from magweld.passes.ir.utils import groups_of

# [b0, b1, rows, columns] with its first two dims flattened.
_FLATTENED = [[0, 1], [2], [3]]


def unflatten(op: linalg.BatchMatmulOp, rewriter: Any) -> bool:
    """Compute a product whose operands were flattened on their own dimensions."""
    if not op.results or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    if any(ir.ShapedType(value.type).rank != 3 for value in op.inputs):
        return False  # one that is the same for the whole batch
    sources = [_flattened(value) for value in op.inputs]
    batch = next((tuple(s.type.shape)[:2] for s in sources if s is not None), None)
    init = filled_with(op.outputs[0])
    if batch is None or init is None:
        return False
    operands = [
        source if source is not None else _expand(value, batch)
        for source, value in zip(sources, op.inputs, strict=True)
    ]
    if any(tuple(value.type.shape)[:2] != batch for value in operands):
        return False
    maps = [_with_two_batch_dims(attr.value) for attr in op.indexing_maps]
    flat = ir.RankedTensorType(op.results[0].type)
    shape = [*batch, *flat.shape[1:]]
    empty = tensor.EmptyOp(shape, flat.element_type).result
    filled = linalg.fill(init, outs=[empty])
    product = build_contraction(operands, filled, maps)
    rewriter.replace_op(
        op.operation, [tensor.collapse_shape(flat, product, _FLATTENED)]
    )
    return True


def round_first(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Round a product on its own dimensions, before they are flattened."""
    if len(op.inputs) != 1 or len(op.results) != 1:
        return False
    joined = defining_op(op.inputs[0])
    if (
        not isinstance(joined, tensor.CollapseShapeOp)
        or groups_of(joined) != _FLATTENED
    ):
        return False
    product = defining_op(joined.src)
    *body, _ = op.regions[0].blocks[0].operations
    maps = [attr.value for attr in op.indexing_maps]
    plain = all(map_ == ir.AffineMap.get_identity(3) for map_ in maps)
    is_rounding = [nested.operation.name for nested in body] == ["arith.truncf"]
    alone = len(list(op.inputs[0].uses)) == 1
    if not (plain and is_rounding and alone and _is_product(product)):
        return False
    identity = ir.AffineMap.get_identity(4)
    shape = list(joined.src.type.shape)
    rounded = rebuild(op, [joined.src], [identity] * 2, shape)
    flat = op.results[0].type
    rewriter.replace_op(
        op.operation, [tensor.collapse_shape(flat, rounded.results[0], _FLATTENED)]
    )
    return True


def _is_product(op: Any) -> bool:
    return op is not None and bool(linalg.isa_contraction_op(op.operation))


def _flattened(value: Any) -> Any | None:
    """The source of a collapse of the first two of four dimensions.

    Which dimension one of extent one is said to join makes no difference.
    """
    producer = defining_op(value)
    if producer is None or producer.operation.name != "tensor.collapse_shape":
        return None
    source = producer.operation.operands[0]
    shape, flat = (tuple(v.type.shape) for v in (source, value))
    flattened = len(shape) == len(flat) + 1 and shape[2:] == flat[1:]
    return source if flattened else None


def _expand(value: Any, batch: tuple[int, ...]) -> Any:
    flat = ir.RankedTensorType(value.type)
    return expand(value, [*batch, *flat.shape[1:]], _FLATTENED)


def _with_two_batch_dims(map_: Any) -> Any:
    """Turn (b, m, n, k) -> (b, ...) into (b0, b1, m, n, k) -> (b0, b1, ...)."""
    dims = [expr.position for expr in map_.results]
    moved = [0, 1, *(dim + 1 for dim in dims[1:])]
    return ir.AffineMap.get(5, 0, [ir.AffineDimExpr.get(dim) for dim in moved])


@dataclass(frozen=True)
class UnflattenBatchMatmul(PatternPass):
    """Replace a product of flattened batches by a contraction over both batch dims.

    ```mlir
    %f = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<8x12x64x32xf32> into ...
    %r = linalg.batch_matmul ins(%f, ...) outs(%zero) -> tensor<96x64x64xf32>
    ```
    becomes a `linalg.generic` on `tensor<8x12x64x32xf32>` whose result is collapsed.
    The reshape no longer stands between the product and what makes its operands, so
    they can be connected. Halves are rounded before the result is collapsed, so that
    they are what others reshape. Products that accumulate into something but a
    constant, and those of integers, are left alone.
    """

    name: ClassVar[str] = "unflatten-batch-matmul"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the patterns of products and of roundings."""
        return (
            (linalg.BatchMatmulOp, _floats_only),
            (linalg.GenericOp, round_first),
        )


def _floats_only(op: linalg.BatchMatmulOp, rewriter: Any) -> bool:
    types = [ir.ShapedType(value.type).element_type for value in op.operands]
    floats = all(isinstance(type_, ir.FloatType) for type_ in types)
    return floats and unflatten(op, rewriter)
