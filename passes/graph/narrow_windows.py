"""Owns the pass that lets windows of many channels read halves, for GPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from magweld.bindings import arith, ir, linalg, tensor
from magweld.passes.graph.absorb_widening import narrow_source
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.constants import constant_number
from magweld.passes.ir.pads import Pad, static_pad
from magweld.passes.tiling.matrix_units import STEP

# Fewer pixels than a fragment has columns are no matrix.
_COLUMNS = 8


def narrow(op: linalg.Conv2DNchwFchwOp, rewriter: Any) -> bool:
    """Read the image and the weights of a convolution before they are widened."""
    factors = factors_of(op)
    if factors is None or all(_is_narrow(value.type) for value in op.inputs):
        return False
    image, weights, pad = factors
    if pad is not None:
        image = _padded(image, pad, op.inputs[0].type)
    made = linalg.Conv2DNchwFchwOp(
        [op.results[0].type],
        [image, weights],
        list(op.outputs),
        strides=op.strides,
        dilations=op.dilations,
    )
    linalg.fill_builtin_region(made.operation)
    rewriter.replace_op(op.operation, made.operation)
    return True


class Factors(NamedTuple):
    """What a convolution of halves reads.

    Attributes:
        image: The image before it is widened and padded.
        weights: The weights before they are widened.
        pad: The border of zeros around the image, None without one.
    """

    image: Any
    weights: Any
    pad: Pad | None


def factors_of(op: linalg.Conv2DNchwFchwOp) -> Factors | None:
    """Return the halves of a convolution that becomes products of points of windows.

    Its channels are whole steps and rows of matrix instructions. Its windows have
    several points, or its pixels are no whole fragments: others are products as they
    are. None for other convolutions.
    """
    if not op.results or not _has_matrices(op):
        return None
    pad = static_pad(op.inputs[0])
    if pad is not None and constant_number(pad.fill) != 0:
        return None
    image = _halves(op.inputs[0] if pad is None else pad.source)
    weights = _halves(op.inputs[1])
    if image is None or weights is None:
        return None
    alike = image.type.element_type == weights.type.element_type
    return Factors(image, weights, pad) if alike else None


def _halves(value: Any) -> Any | None:
    return value if _is_narrow(value.type) else narrow_source(value)


def _is_narrow(type_: Any) -> bool:
    return isinstance(type_.element_type, ir.F16Type | ir.BF16Type)


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


def _padded(source: Any, pad: Pad, whole: Any) -> Any:
    """Return a tensor with the border of another one, of zeros."""
    element = source.type.element_type
    type_ = ir.RankedTensorType.get(list(whole.shape), element)
    made = tensor.PadOp(type_, source, [], [], list(pad.low), list(pad.high))
    index = ir.IndexType.get()
    places = [ir.Location.current] * source.type.rank
    block = made.regions[0].blocks.append(*[index] * source.type.rank, arg_locs=places)
    with ir.InsertionPoint(block):
        zero = arith.constant(element, 0.0)
        tensor.YieldOp(zero)
    return made.result


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
