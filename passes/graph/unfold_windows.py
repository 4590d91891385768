"""Owns the pass that makes convolutions of few pixels products, for CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.codegen.unfolded_windows import UnfoldedWindows
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.narrow_operands import Factors, narrow_factors
from magweld.passes.ir.point_convolutions import convolve_points, read_points
from magweld.passes.ir.tensor_reshapes import collapse, expand


def unfold(op: linalg.Conv2DNchwFchwOp, rewriter: Any) -> bool:
    """Give a convolution each point of its windows as a channel."""
    factors = _factors_of(op)
    if factors is None:
        return False
    window = _window_of(op, factors)
    if window is None or not window.pays:
        return False
    image, weights = factors.bordered(), factors.weights
    unfolded = _unfolded(image, window, _steps(op, "dilations"))
    product = convolve_points(op, unfolded, _as_points(weights))
    rewriter.replace_op(op.operation, product.operation)
    return True


def _factors_of(op: linalg.Conv2DNchwFchwOp) -> Factors | None:
    """Return what a convolution reads: bf16 before it is widened, or f32."""
    if not op.results:
        return None  # it writes a buffer
    kinds = [ir.RankedTensorType(value.type) for value in op.operands]
    if not all(kind.has_static_shape for kind in kinds):
        return None
    *read, summed = (kind.element_type for kind in kinds)
    if not isinstance(summed, ir.F32Type):
        return None
    narrow = narrow_factors(op)
    if narrow is not None and isinstance(narrow.element_type, ir.BF16Type):
        return narrow
    image, weights = op.inputs
    plain = all(isinstance(kind, ir.F32Type) for kind in read)
    return Factors(image, weights, None) if plain else None


def _window_of(op: linalg.Conv2DNchwFchwOp, factors: Factors) -> UnfoldedWindows | None:
    strides = _steps(op, "strides")
    if not strides or not _steps(op, "dilations"):
        return None
    weights = list(factors.weights.type.shape)
    result = list(op.results[0].type.shape)
    return UnfoldedWindows(factors.element_type.width, weights, result, strides)


def _steps(op: linalg.Conv2DNchwFchwOp, name: str) -> list[int]:
    """Return the strides or dilations of a convolution, none if it states none."""
    found = op.attributes.get(name)
    return [] if found is None else list(ir.DenseIntElementsAttr(found))


def _unfolded(image: Any, window: UnfoldedWindows, dilations: Sequence[int]) -> Any:
    """Emit u[n, (c, i, j), y, x] = image[n, c, stride * y + i, stride * x + j]."""
    n, c, i, j, y, x = (ir.AffineExpr.get_dim(d) for d in range(6))
    (down, across), (below, beside) = window.strides, dilations
    read = [n, c, y * down + i * below, x * across + j * beside]
    copied = read_points(image, window.sizes, read)
    return collapse(copied, [[0], [1, 2, 3], [4], [5]])


def _as_points(weights: Any) -> Any:
    """Emit the weights of as many channels, each of a single point."""
    rows, *rest = weights.type.shape
    flat = collapse(weights, [[0], [1, 2, 3]])
    return expand(flat, [rows, prod(rest), 1, 1], [[0], [1, 2, 3]])


@dataclass(frozen=True)
class UnfoldWindows(PatternPass):
    """Put the windows of a convolution side by side, where they are few.

    ```mlir
    %y = linalg.conv_2d_nchw_fchw {strides = dense<2>}
        ins(%x, %w : tensor<1x64x15x15xf32>, tensor<64x64x3x3xf32>)
    ```
    becomes
    ```mlir
    %u = linalg.generic {(n, c, i, j, y, x) -> (n, c, 2 y + i, 2 x + j)} ins(%x)
    %p = tensor.collapse_shape %u [[0], [1, 2, 3], [4], [5]]
    %v = tensor.expand_shape (tensor.collapse_shape %w [[0], [1, 2, 3]]) ...
    %y = linalg.conv_2d_nchw_fchw
        ins(%p, %v : tensor<1x576x7x7xf32>, tensor<64x576x1x1xf32>)
    ```
    What is left is a product of matrices, whose vectors run along all pixels in place
    of short rows of every second one. A library, which would compute the convolution
    otherwise, brings the weights into its own order at every call. Pixels and weights
    of bf16 are put side by side before they are widened, there are instructions for
    products of them; of many channels also where windows are at every point. Windows
    of f32 at every point take fewer products (`select-winograd`). Those of few channels
    are left alone, and those whose sums are not f32.
    """

    name: ClassVar[str] = "unfold-windows"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the pattern for convolutions of images."""
        return [(linalg.Conv2DNchwFchwOp, unfold)]
