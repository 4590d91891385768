"""Owns the pass that lets products of matrices read narrow elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from magweld.bindings import arith, ir, linalg
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op

MatmulLike: TypeAlias = linalg.MatmulOp | linalg.BatchMatmulOp


def absorb(op: MatmulLike, rewriter: Any) -> bool:
    """Read operands before they are widened."""
    if not op.results:
        return False  # on buffers nothing says that the source is unchanged
    inputs = [_narrow(value) or value for value in op.inputs]
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


def _narrow(value: Any) -> Any | None:
    """Return the tensor that another one is the widened copy of."""
    copy = defining_op(value)
    if not isinstance(copy, linalg.GenericOp) or len(copy.inputs) != 1:
        return None
    block = copy.regions[0].blocks[0]
    *body, terminator = block.operations
    if len(body) != 1 or not isinstance(body[0], arith.ExtFOp):
        return None
    if not isinstance(body[0].in_.type, ir.F16Type | ir.BF16Type):
        return None
    identity = ir.AffineMap.get_identity(copy.results[0].type.rank)
    plain = all(attr.value == identity for attr in copy.indexing_maps)
    whole = list(terminator.operands) == [body[0].result]
    return copy.inputs[0] if plain and whole else None


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
    each kernel, and widened in registers. Roundings are left alone.
    """

    name: ClassVar[str] = "absorb-widening"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return one pattern for each kind of product."""
        return ((linalg.MatmulOp, absorb), (linalg.BatchMatmulOp, absorb))
