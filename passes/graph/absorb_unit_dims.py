"""Owns the pass that reads through reshapes which only add dimensions of extent one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.graph.generic_reads import loops_known, replace_reads
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.utils import groups_of


def absorb(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Read operands before the reshape that gave them dimensions of extent one."""
    if not op.results:
        return False
    maps = [attr.value for attr in op.indexing_maps]
    operands = list(op.inputs)
    for number, value in enumerate(operands):
        expand = defining_op(value)
        if not isinstance(expand, tensor.ExpandShapeOp):
            continue
        kept = _kept_dims(expand)
        if kept is None:
            continue
        results = list(maps[number].results)
        operands[number] = expand.src
        maps[number] = ir.AffineMap.get(
            maps[number].n_dims, 0, [results[dim] for dim in kept]
        )
    if operands == list(op.inputs) or not loops_known(maps):
        return False
    replace_reads(op, rewriter, operands, maps)
    return True


def _kept_dims(expand: tensor.ExpandShapeOp) -> list[int] | None:
    """For each dimension of the source its dimension in the result.

    None where a dimension is split into several that are not of extent one.
    """
    shape = list(ir.RankedTensorType(expand.result.type).shape)
    kept: list[int] = []
    for dims in groups_of(expand):
        large = [dim for dim in dims if shape[dim] != 1]
        if len(large) > 1:
            return None
        kept.append(large[0] if large else dims[-1])
    return kept


@dataclass(frozen=True)
class AbsorbUnitDims(PatternPass):
    """Fold reshapes that only add dimensions of extent one into their readers.

    ```mlir
    %e = tensor.expand_shape %m [[0], [1, 2]] : tensor<8x64xf32> into tensor<8x64x1xf32>
    linalg.generic {indexing_maps = [..., (d0, d1, d2) -> (d0, d1, 0), ...]} ins(.., %e)
    ```
    reads `%m` through `(d0, d1, d2) -> (d0, d1)`, so that the reshape no longer
    hides what makes `%m` from the scheduler. Other reshapes are left alone.
    """

    name: ClassVar[str] = "absorb-unit-dims"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the only pattern."""
        return ((linalg.GenericOp, absorb),)
