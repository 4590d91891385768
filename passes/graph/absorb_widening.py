"""Owns the pass that lets products of matrices read narrow elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from magweld.bindings import ir, linalg
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.narrow_operands import narrow_source

MatmulLike: TypeAlias = linalg.MatmulOp | linalg.BatchMatmulOp
WindowLike: TypeAlias = linalg.Conv1DNcwFcwOp | linalg.Conv2DNchwFchwOp


def absorb(op: MatmulLike, rewriter: Any) -> bool:
    """Read operands before they are widened."""
    if not op.results:
        return False  # on buffers nothing says that the source is unchanged
    inputs = [narrow_source(value) or value for value in op.inputs]
    if inputs == list(op.inputs):
        return False
    product = type(op)(
        [op.results[0].type],
        inputs,
        list(op.outputs),
        indexing_maps=op.indexing_maps,
    )
    linalg.fill_builtin_region(product.operation)
    rewriter.replace_op(op.operation, product.operation)
    return True


def absorb_into_points(op: WindowLike, rewriter: Any) -> bool:
    """Read the operands of a convolution of bf16 in points before they are widened."""
    if not op.results or {*op.inputs[1].type.shape[2:]} != {1}:
        return False
    inputs = [narrow_source(value) for value in op.inputs]
    kinds = [value.type.element_type for value in inputs if value is not None]
    if len(kinds) < len(inputs) or not all(isinstance(k, ir.BF16Type) for k in kinds):
        return False
    product = type(op)(
        [op.results[0].type],
        inputs,
        list(op.outputs),
        strides=op.strides,
        dilations=op.dilations,
    )
    linalg.fill_builtin_region(product.operation)
    rewriter.replace_op(op.operation, product.operation)
    return True


@dataclass(frozen=True)
class AbsorbWidening(PatternPass):
    """Fold the widening of f16 and bf16 into the products of matrices behind it.

    ```mlir
    %w = linalg.generic {extf} ins(%weight : tensor<768x768xf16>) -> tensor<768x768xf32>
    %r = linalg.matmul ins(%x, %w : ...) outs(%c : tensor<4x768xf32>)
    ```
    becomes
    ```mlir
    %r = linalg.matmul ins(%x, %weight : ..., tensor<768x768xf16>) outs(%c : ...)
    ```
    The product still sums in the type of its result. Weights are so read narrow, by
    each kernel, and widened in registers. Roundings are left alone. A convolution of
    bf16 whose window is one point is a product as well, for which CPUs have
    instructions; f16 takes 1 to 7 % longer so. Windows read their pixels more than
    once, widened before.
    """

    name: ClassVar[str] = "absorb-widening"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return one pattern for each kind of product."""
        return (
            (linalg.MatmulOp, absorb),
            (linalg.BatchMatmulOp, absorb),
            (linalg.Conv1DNcwFcwOp, absorb_into_points),
            (linalg.Conv2DNchwFchwOp, absorb_into_points),
        )
