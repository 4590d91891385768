"""Owns the pass that makes strided convolutions of few pixels products, for CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.passes.analysis.library_calls import LIBRARY_CHANNELS
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.point_convolutions import convolve_points, read_points
from magweld.passes.ir.tensor_reshapes import collapse, expand

# Most bytes of all windows of an image side by side: they are written and read once,
# which costs more than a library's own copies where no cache holds them. With windows
# of 3 x 3 and stride two over 28 x 28 pixels of 256 channels, one image (1.7 MiB) takes
# 14 % less than by the library, two (3.5 MiB) 5 % less and four 6 % more, with weights
# that come from memory (one core of Zen 4).
MOST_BYTES = 4 << 20


def unfold(op: linalg.Conv2DNchwFchwOp, rewriter: Any) -> bool:
    """Give a strided convolution each point of its windows as a channel."""
    window = _window_of(op)
    if window is None or not window.pays:
        return False
    image, weights = op.inputs
    unfolded = window.unfold(image)
    product = convolve_points(op, unfolded, window.as_points(weights))
    rewriter.replace_op(op.operation, product.operation)
    return True


@dataclass(frozen=True)
class _Window:
    """A convolution of f32.

    Attributes:
        weights: Channels of the result, of the image, rows and columns of the window.
        result: Images, channels, rows, columns.
        strides: Pixels from a window to the next one, down and across.
        dilations: Pixels from a point of a window to the next one.
    """

    weights: tuple[int, ...]
    result: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def unfolded(self) -> tuple[int, ...]:
        """Images, channels, points down and across, rows and columns of the result."""
        images, _, *pixels = self.result
        return (images, *self.weights[1:], *pixels)

    @property
    def pays(self) -> bool:
        """Whether a library computes it otherwise, and copies more."""
        rows, channels, *points = self.weights
        if max(self.strides) == 1 or prod(points) == 1:
            return False
        many = min(rows, channels) >= LIBRARY_CHANNELS
        return many and 0 < 4 * prod(self.unfolded) <= MOST_BYTES

    def unfold(self, image: Any) -> Any:
        """Emit u[n, (c, i, j), y, x] = image[n, c, stride * y + i, stride * x + j]."""
        n, c, i, j, y, x = (ir.AffineExpr.get_dim(d) for d in range(6))
        (down, across), (below, beside) = self.strides, self.dilations
        read = [n, c, y * down + i * below, x * across + j * beside]
        copied = read_points(image, self.unfolded, read)
        return collapse(copied, [[0], [1, 2, 3], [4], [5]])

    def as_points(self, weights: Any) -> Any:
        """Emit the weights of as many channels, each of a single point."""
        rows, *rest = self.weights
        flat = collapse(weights, [[0], [1, 2, 3]])
        return expand(flat, [rows, prod(rest), 1, 1], [[0], [1, 2, 3]])


def _window_of(op: linalg.Conv2DNchwFchwOp) -> _Window | None:
    if not op.results:
        return None  # it writes a buffer
    kinds = [ir.RankedTensorType(value.type) for value in op.operands]
    if not all(kind.has_static_shape for kind in kinds):
        return None
    if not all(isinstance(kind.element_type, ir.F32Type) for kind in kinds):
        return None
    steps = [
        tuple(ir.DenseIntElementsAttr(op.attributes[name]))
        for name in ("strides", "dilations")
        if name in op.attributes
    ]
    if len(steps) != 2:
        return None
    return _Window(tuple(kinds[1].shape), tuple(kinds[2].shape), *steps)


@dataclass(frozen=True)
class UnfoldWindows(PatternPass):
    """Put the windows of a strided convolution side by side, where they are few.

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
    otherwise, brings the weights into its own order at every call. Those of few
    channels are left alone, and those of other types than f32; windows at every point
    take fewer products (`select-winograd`).
    """

    name: ClassVar[str] = "unfold-windows"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the pattern for convolutions of images."""
        return [(linalg.Conv2DNchwFchwOp, unfold)]
