"""Owns the pass that lets windows of many channels read halves, for GPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.narrow_operands import Factors, is_narrow, narrow_factors
from magweld.passes.tiling.matrix_units import STEP

# Fewer pixels than a fragment has columns are no matrix.
_COLUMNS = 8


def narrow(op: linalg.Conv2DNchwFchwOp, rewriter: Any) -> bool:
    """Read the image and the weights of a convolution before they are widened."""
    factors = factors_of(op)
    kinds = [value.type.element_type for value in op.inputs]
    if factors is None or all(map(is_narrow, kinds)):
        return False
    made = linalg.Conv2DNchwFchwOp(
        [op.results[0].type],
        [factors.bordered(), factors.weights],
        list(op.outputs),
        strides=op.strides,
        dilations=op.dilations,
    )
    linalg.fill_builtin_region(made.operation)
    rewriter.replace_op(op.operation, made.operation)
    return True


def factors_of(op: linalg.Conv2DNchwFchwOp) -> Factors | None:
    """Return the halves of a convolution that becomes products of points of windows.

    Its channels are whole steps and rows of matrix instructions. Its windows have
    several points, or its pixels are no whole fragments: others are products as they
    are. None for other convolutions.
    """
    return narrow_factors(op) if op.results and _has_matrices(op) else None


def _has_matrices(op: linalg.Conv2DNchwFchwOp) -> bool:
    weights, result = (
        ir.RankedTensorType(value.type) for value in (op.inputs[1], op.results[0])
    )
    if not weights.has_static_shape or not result.has_static_shape:
        return False
    if not isinstance(result.element_type, ir.F32Type):
        return False
    rows, channels, *window = weights.shape
    pixels = math.prod(result.shape[2:])
    several = {*window} != {1} or (pixels > _COLUMNS and pixels % _COLUMNS > 0)
    return several and not (rows % STEP or channels % STEP)


@dataclass(frozen=True)
class NarrowWindows(PatternPass):
    """Let convolutions that become products point by point read f16 and bf16.

    ```mlir
    %w = linalg.generic {extf} ins(%x : tensor<1x64x14x14xf16>) -> tensor<...xf32>
    %p = tensor.pad %w low[0, 0, 1, 1] high[0, 0, 1, 1] {yield %zero}
    %y = linalg.conv_2d_nchw_fchw ins(%p, %weights : ..., tensor<64x64x3x3xf32>) ...
    ```
    becomes
    ```mlir
    %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {yield %zero}
    %y = linalg.conv_2d_nchw_fchw ins(%p, %weights : ..., tensor<64x64x3x3xf16>) ...
    ```
    which still sums in f32. Matrix instructions compute such convolutions point by
    point (multiply-window-points): those whose channels are whole steps and rows of
    instructions, with windows of several points, or pixels that are no whole fragments,
    such as 7 x 7 and 14 x 14. Others are left alone, as threads would widen each pixel
    for each point. For devices on which threads share a tile.
    """

    name: ClassVar[str] = "narrow-windows"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the pattern for convolutions of images."""
        return [(linalg.Conv2DNchwFchwOp, narrow)]
