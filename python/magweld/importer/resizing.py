"""Owns operators that enlarge images, as products and arrangements of elements.

Through torch they are one step on whole images. Taken apart, a part of the result
follows from a part of the operand, so that images that do not fit a memory budget can
be made tile by tile, and a GPU makes them in its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from magweld.importer.decompositions import convolution
from magweld.importer.dtypes import arranged_only, generated_floats_only

aten = torch.ops.aten


def _factors(
    x: Tensor, size: Sequence[int], scales: Sequence[float | None]
) -> tuple[int, ...] | None:
    """How many times an image becomes larger; None unless by powers of two.

    Positions are computed in f32 from the quotient or from the stated scale: for these
    factors they are exact.
    """
    found = []
    for extent, target, scale in zip(x.shape[2:], size, scales, strict=True):
        factor = target // max(1, extent)
        exact = factor * extent == target and factor.bit_count() == 1
        if not exact or (scale is not None and scale != factor):
            return None
        found.append(factor)
    return tuple(found)


def _interleaved(parts: list[Tensor], dim: int) -> Tensor:
    """Merge images so that neighbours along a dimension come from different ones."""
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[dim] *= len(parts)
    return torch.stack(parts, dim + 1).reshape(shape)


def _nearest(
    x: Tensor,
    size: Sequence[int],
    scale_h: float | None = None,
    scale_w: float | None = None,
) -> Any:
    factors = _factors(x, size, (scale_h, scale_w))
    if factors is None:
        return NotImplemented
    batch, channels, height, width = x.shape
    h, w = factors
    repeated = x.view(batch, channels, height, 1, width, 1)
    repeated = repeated.expand(batch, channels, height, h, width, w)
    return repeated.reshape(batch, channels, height * h, width * w)


def _bilinear(
    x: Tensor,
    size: Sequence[int],
    align_corners: bool,
    scale_h: float | None = None,
    scale_w: float | None = None,
) -> Any:
    factors = _factors(x, size, (scale_h, scale_w))
    if align_corners or factors is None:
        return NotImplemented
    for dim, factor in zip((2, 3), factors, strict=True):
        x = _linear(x, dim, factor)
    return x


def _linear(x: Tensor, dim: int, factor: int) -> Tensor:
    """Interpolate along one dimension; beyond its ends it goes on as it ends."""
    extent = x.shape[dim]
    ends = [x.narrow(dim, 0, 1), x, x.narrow(dim, extent - 1, 1)]
    extended = torch.cat(ends, dim)
    phases = []
    for phase in range(factor):
        position = (phase + 0.5) / factor - 0.5
        first = 0 if position < 0 else 1
        share = position + 1 - first
        left = extended.narrow(dim, first, extent)
        if share:
            right = extended.narrow(dim, first + 1, extent)
            left = left * (1 - share) + right * share
        phases.append(left)
    return _interleaved(phases, dim)


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    if bias is not None:
        options = (stride, padding, dilation, transposed, output_padding, groups)
        return convolution(x, weight, bias, *options)
    window = tuple(weight.shape[2:])
    apart = transposed and groups == 1 and window == tuple(stride) and len(window) == 2
    if not apart or any(padding) or any(output_padding):
        return NotImplemented
    return _spread(x, weight)


def _spread(x: Tensor, weight: Tensor) -> Tensor:
    """A transposed convolution whose windows do not meet: each point makes one."""
    batch, inputs, height, width = x.shape
    outputs, h, w = weight.shape[1:]
    points = weight.permute(1, 2, 3, 0).reshape(outputs * h * w, inputs, 1, 1)
    made: Tensor = aten.convolution.default(
        x, points, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    )
    windows = made.view(batch, outputs, h, w, height, width)
    return windows.permute(0, 1, 4, 2, 5, 3).reshape(
        batch, outputs, height * h, width * w
    )


RESIZING: dict[OpOverload, Callable[..., Any]] = {
    aten.convolution.default: generated_floats_only(_convolution),
    aten.upsample_bilinear2d.default: generated_floats_only(_bilinear),
    aten.upsample_nearest2d.default: arranged_only(_nearest),
}
"""In the place of what `DECOMPOSITIONS` has for these operators."""
