"""Owns the pass that moves reshapes which split products behind what follows these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.analysis.elementwise import (
    Groups,
    has_whole_groups,
    is_elementwise,
    on_joined_dimensions,
)
from magweld.passes.analysis.runtime_extents import stand_ins_of
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.tensor_reshapes import collapse, expand
from magweld.passes.ir.utils import groups_of


def sink(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Compute what follows a product on its dimensions, and split these after that."""
    if stand_ins_of(op) or not is_elementwise(op):
        return False
    split = next(filter(None, map(_split_product, op.inputs)), None)
    if split is None:
        return False
    groups = groups_of(split)
    maps = [attr.value for attr in op.indexing_maps]
    if not all(has_whole_groups(map_, groups) for map_ in maps):
        return False
    shape = list(ir.RankedTensorType(op.results[0].type).shape)
    joined = list(ir.RankedTensorType(split.src.type).shape)
    made = on_joined_dimensions(op, groups, joined, _joined)
    rewriter.replace_op(op.operation, [expand(made.results[0], shape, groups)])
    return True


def _joined(value: Any, groups: Groups) -> Any:
    """Return a value on joined dimensions: what is made of one other value, anew."""
    maker: Any = defining_op(value)
    if isinstance(maker, tensor.ExpandShapeOp) and groups_of(maker) == groups:
        return maker.src
    alone = is_elementwise(maker) and len(list(value.uses)) == 1
    if not alone or len(maker.inputs) != 1:
        return collapse(value, groups)
    maps = [attr.value for attr in maker.indexing_maps]
    if not all(has_whole_groups(map_, groups) for map_ in maps):
        return collapse(value, groups)
    type_ = ir.RankedTensorType(value.type)
    shape = [prod(type_.shape[dim] for dim in group) for group in groups]
    return on_joined_dimensions(maker, groups, shape, _joined).results[0]


def _split_product(value: Any) -> tensor.ExpandShapeOp | None:
    """Return the reshape that makes a value of a product, None for other values."""
    maker = defining_op(value)
    if not isinstance(maker, tensor.ExpandShapeOp) or len(list(value.uses)) != 1:
        return None
    return maker if _follows_product(maker.src) else None


def _follows_product(value: Any) -> bool:
    """Whether a value is a product, or what follows one element by element."""
    maker = defining_op(value)
    if maker is None or len(list(value.uses)) != 1:
        return False
    if linalg.isa_contraction_op(maker.operation):
        return True
    return is_elementwise(maker) and any(map(_follows_product, maker.inputs))


@dataclass(frozen=True)
class SinkExpand(PatternPass):
    """Move `tensor.expand_shape` of a product behind the elementwise operations there.

    ```mlir
    %e = tensor.expand_shape %product [[0, 1], [2]] : ... into tensor<8x128x768xf32>
    %s = linalg.generic {elementwise} ins(%e, %bias : tensor<8x128x768xf32>, ...)
    ```
    becomes the operation on `tensor<1024x768xf32>`, whose result is split: it can then
    be connected to the product, as its epilogue, and a library adds the bias. Other
    operands have all of the dimensions that are joined, or none of them; the former are
    joined as well, before what widens or rounds them. Left alone: a product, or a
    reshape of it, that others read too.
    """

    name: ClassVar[str] = "sink-expand"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the only pattern."""
        return ((linalg.GenericOp, sink),)
