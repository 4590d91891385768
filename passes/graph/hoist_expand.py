"""Owns the pass that moves reshapes which split dimensions before elementwise ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, tensor
from magweld.passes.analysis.elementwise import is_elementwise, on_split_dimensions
from magweld.passes.analysis.runtime_extents import parts_runtime_extents
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.utils import groups_of


def hoist(op: tensor.ExpandShapeOp, rewriter: Any) -> bool:
    """Compute an elementwise operation on split dimensions instead of splitting after.

    Every operand gets the reshape that the result had, so that one more operation
    can be connected to what reads the result.
    """
    producer = defining_op(op.src)
    if not is_elementwise(producer) or len(list(op.src.uses)) != 1:
        return False
    groups, shape = groups_of(op), list(ir.RankedTensorType(op.result.type).shape)
    if parts_runtime_extents(op, groups, shape):
        return False
    rewriter.replace_op(op.operation, on_split_dimensions(producer, groups, shape))
    return True


@dataclass(frozen=True)
class HoistExpand(PatternPass):
    """Move `tensor.expand_shape` before the elementwise operation that it follows.

    ```mlir
    %s = linalg.generic {elementwise} ins(%product, %bias : tensor<512x384xf32>, ...)
    %e = tensor.expand_shape %s [[0, 1], [2, 3]] : ... into tensor<8x64x12x32xf32>
    ```
    becomes the operation on `tensor<8x64x12x32xf32>` with its operands split. The
    operation can then be connected to what reads `%e`. Left alone: results that
    others read too, operands read in another order than the result is written,
    operations that use `linalg.index`, those whose body reads what the result starts
    from where that is no fill, and dimensions that are split into several extents that
    a call tells (`join-runtime-loops`).
    """

    name: ClassVar[str] = "hoist-expand"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the only pattern."""
        return ((tensor.ExpandShapeOp, hoist),)
