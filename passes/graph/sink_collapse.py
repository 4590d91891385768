"""Owns the pass that moves reshapes which join dimensions behind elementwise ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.analysis.elementwise import (
    Groups,
    is_elementwise,
    on_split_dimensions,
)
from magweld.passes.analysis.runtime_extents import parts_runtime_extents
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.tensor_reshapes import collapse
from magweld.passes.ir.utils import groups_of, users_of


def sink(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Compute an operation on the split dimensions of what it reads."""
    if not is_elementwise(op):
        return False
    joined = next(filter(None, map(_made_on_split_dimensions, op.inputs)), None)
    if joined is None:
        return False
    groups = groups_of(joined)
    shape = list(ir.RankedTensorType(joined.src.type).shape)
    if parts_runtime_extents(op, groups, shape) or not _can_be_split(op, groups):
        return False
    made = on_split_dimensions(op, groups, shape)
    rewriter.replace_op(op.operation, [collapse(made.results[0], groups)])
    return True


def _made_on_split_dimensions(value: Any) -> tensor.CollapseShapeOp | None:
    """Return the reshape that makes a value, if one computes for it element by element.

    Only elementwise operations may read it: they all go before the reshape then. Rows
    stay as long as they are.
    """
    maker = defining_op(value)
    if not isinstance(maker, tensor.CollapseShapeOp):
        return None
    groups = groups_of(maker)
    # One number has no rows.
    if not groups or len(groups[-1]) > 1:
        return None
    if not _is_written_in_order(defining_op(maker.src)):
        return None
    users = users_of(value)
    goes = all(is_elementwise(op) and _loops(op) == len(groups) for op in users)
    return maker if goes else None


def _loops(op: linalg.GenericOp) -> int:
    """Return the number of loops; one that repeats a value has more than that."""
    return int(op.indexing_maps[0].value.n_dims)


def _is_written_in_order(op: Any) -> bool:
    """Whether each loop of an operation is a dimension of its only result."""
    if not isinstance(op, linalg.GenericOp) or len(op.results) != 1:
        return False
    *_, written = [attr.value for attr in op.indexing_maps]
    return bool(written == ir.AffineMap.get_identity(written.n_dims))


def _can_be_split(op: linalg.GenericOp, groups: Groups) -> bool:
    """Whether operands with all dimensions are there, or are made, on split ones.

    To split what another operation makes would part the two.
    """
    maps = [attr.value for attr in op.indexing_maps]
    return all(
        len(map_.results) < map_.n_dims
        or defining_op(value) is None
        or _is_joined(value, groups)
        for value, map_ in zip(op.inputs, maps[:-1], strict=True)
    )


def _is_joined(value: Any, groups: Groups) -> bool:
    joined = _made_on_split_dimensions(value)
    return joined is not None and groups_of(joined) == groups


@dataclass(frozen=True)
class SinkCollapse(PatternPass):
    """Move `tensor.collapse_shape` behind the elementwise operations that read it.

    ```mlir
    %s = linalg.generic {elementwise} ins(%x, %mean : tensor<8x4x96xf32>, ...) ...
    %c = tensor.collapse_shape %s [[0, 1], [2]] : ... into tensor<32x96xf32>
    %r = linalg.generic {elementwise} ins(%c : tensor<32x96xf32>) ...
    ```
    becomes the operation on `tensor<8x4x96xf32>`, whose result is joined: an
    activation so follows a norm of groups of channels in its kernel. `hoist-collapse`
    has left alone what cannot be computed on joined dimensions. Other operands are
    arguments, have fewer dimensions, or come from such a reshape as well. Left alone:
    reshapes that anything else reads, and rows that are joined themselves.
    """

    name: ClassVar[str] = "sink-collapse"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the only pattern."""
        return ((linalg.GenericOp, sink),)
