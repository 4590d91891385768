"""Owns the pass that moves reshapes which join dimensions before elementwise ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, tensor
from magweld.passes.analysis.elementwise import (
    Groups,
    has_whole_groups,
    is_elementwise,
    on_joined_dimensions,
)
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.utils import groups_of


def hoist(op: tensor.CollapseShapeOp, rewriter: Any) -> bool:
    """Compute on joined dimensions what is computed on the split ones of a product."""
    groups = groups_of(op)
    if not _can_be_joined(op.src, groups) or not _was_split(op.src, groups):
        return False
    rewriter.replace_op(op.operation, _on_joined_dimensions(op, groups))
    return True


def _can_be_joined(value: Any, groups: Groups) -> bool:
    """Whether a value is known on joined dimensions, or can be computed on them."""
    maker = defining_op(value)
    if maker is None:
        return True  # an argument is looked at in whatever shape
    if isinstance(maker, tensor.ExpandShapeOp):
        return groups_of(maker) == groups
    if not is_elementwise(maker) or len(list(value.uses)) != 1:
        return False
    maps = [attr.value for attr in maker.indexing_maps]
    return all(
        has_whole_groups(map_, groups)
        and (len(map_.results) < map_.n_dims or _can_be_joined(operand, groups))
        for operand, map_ in zip(maker.inputs, maps[:-1], strict=True)
    )


def _was_split(value: Any, groups: Groups) -> bool:
    """Whether some operand on the way was split in the same dimensions."""
    waiting, seen = [value], {value}
    while waiting:
        maker: Any = defining_op(waiting.pop())
        if isinstance(maker, tensor.ExpandShapeOp) and groups_of(maker) == groups:
            return True
        inputs = set(maker.inputs if is_elementwise(maker) else ()) - seen
        seen |= inputs
        waiting += inputs
    return False


def _on_joined_dimensions(op: tensor.CollapseShapeOp, groups: Groups) -> Any:
    producer: Any = defining_op(op.src)
    if isinstance(producer, tensor.ExpandShapeOp):
        return producer.src
    shape = list(ir.RankedTensorType(op.result.type).shape)
    return on_joined_dimensions(producer, groups, shape)


@dataclass(frozen=True)
class HoistCollapse(PatternPass):
    """Move `tensor.collapse_shape` before the elementwise operations that it follows.

    ```mlir
    %e = tensor.expand_shape %product [[0, 1], [2]] : ... into tensor<14x14x384xf32>
    %s = linalg.generic {elementwise} ins(%e, %bias : tensor<14x14x384xf32>, ...)
    %c = tensor.collapse_shape %s [[0, 1], [2]] : ... into tensor<196x384xf32>
    ```
    becomes the operation on `tensor<196x384xf32>`: it can then be connected to the
    product and to what reads `%c`. All operands must have been split from the same
    dimensions, be arguments, or have none of those that are joined; what others read
    too is left alone.
    """

    name: ClassVar[str] = "hoist-collapse"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the only pattern."""
        return ((tensor.CollapseShapeOp, hoist),)
