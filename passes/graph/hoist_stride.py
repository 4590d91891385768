"""Owns the pass that takes the points which a convolution of single points reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.point_convolutions import convolve_points, read_points


def hoist(op: linalg.Conv2DNchwFchwOp, rewriter: Any) -> bool:
    """Move the stride of a window of one point to a copy of the image before it."""
    image, weights = op.inputs
    kinds = [ir.ShapedType(value.type) for value in op.operands]
    if not op.results or not all(kind.has_static_shape for kind in kinds):
        return False
    shapes = [list(kind.shape) for kind in kinds]
    if "strides" not in op.attributes:
        return False  # they are one
    strides = list(ir.DenseIntElementsAttr(op.attributes["strides"]))
    if shapes[1][2:] != [1, 1] or strides == [1, 1]:
        return False
    points = _points(image, [*shapes[0][:2], *shapes[2][2:]], strides)
    product = convolve_points(op, points, weights)
    rewriter.replace_op(op.operation, product.operation)
    return True


def _points(image: Any, sizes: list[int], strides: list[int]) -> Any:
    """Emit p[n, c, y, x] = image[n, c, y * stride, x * stride]."""
    n, c, y, x = (ir.AffineExpr.get_dim(d) for d in range(4))
    return read_points(image, sizes, [n, c, y * strides[0], x * strides[1]])


@dataclass(frozen=True)
class HoistStride(PatternPass):
    """Give convolutions of single points only the points of the image that they read.

    ```mlir
    %y = linalg.conv_2d_nchw_fchw {strides = dense<2>}
        ins(%x, %w : tensor<1x64x14x14xf32>, tensor<128x64x1x1xf32>)
    ```
    becomes
    ```mlir
    %p = linalg.generic {(n, c, y, x) -> (n, c, 2 y, 2 x)} ins(%x)
    %y = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<1x64x7x7xf32>, ...)
    ```
    What is left is a product of matrices, whose tiles hold nothing of the image that
    is not read.
    """

    name: ClassVar[str] = "hoist-stride"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the pattern for convolutions of images."""
        return [(linalg.Conv2DNchwFchwOp, hoist)]
