"""Owns the pass that makes convolutions of single points products, for GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.passes.graph.narrow_windows import factors_of
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.contractions import build_contraction
from magweld.passes.ir.narrow_operands import narrow_source
from magweld.passes.ir.tensor_reshapes import collapse

# Operations on windows, with how many dimensions count groups of channels.
_WINDOWS: dict[type[ir.OpView], int] = {
    linalg.Conv1DNcwFcwOp: 0,
    linalg.Conv2DNchwFchwOp: 0,
    linalg.Conv3DNcdhwFcdhwOp: 0,
    linalg.Conv2DNgchwGfchwOp: 1,
}


def convert(op: Any, rewriter: Any) -> bool:
    """Replace a convolution whose window is one point by the product that it is."""
    groups, (image, weights) = _WINDOWS[type(op)], op.inputs
    if not op.results or not _is_point(op, groups):
        return False
    if isinstance(op, linalg.Conv2DNchwFchwOp) and factors_of(op) is not None:
        return False
    inner = 1 + groups
    points = [*([i] for i in range(inner)), [*range(inner, weights.type.rank)]]
    factors = [narrow_source(value) or value for value in (image, weights)]
    factors[1] = collapse(factors[1], points)
    maps = _maps(groups, image.type.rank)
    product = build_contraction(factors, op.outputs[0], maps)
    rewriter.replace_op(op.operation, [product])
    return True


def _is_point(op: Any, groups: int) -> bool:
    """Whether every pixel is read by itself, and numbers are floats of known shape."""
    kinds = [ir.RankedTensorType(value.type) for value in op.operands]
    if not all(kind.has_static_shape for kind in kinds):
        return False
    strides = op.attributes.get("strides")
    steps = () if strides is None else ir.DenseIntElementsAttr(strides)
    return (
        {*kinds[1].shape[2 + groups :]} == {1}
        and all(step == 1 for step in steps)
        and all(isinstance(kind.element_type, ir.FloatType) for kind in kinds)
    )


def _maps(groups: int, rank: int) -> list[ir.AffineMap]:
    """Return the maps of a product of images: (n, groups, f, pixels, c).

    Args:
        groups: How many dimensions count groups.
        rank: Of the images.
    """
    dims = [ir.AffineExpr.get_dim(i) for i in range(rank + 1)]
    image, *own, row = dims[: 2 + groups]
    pixels, channel = dims[2 + groups : -1], dims[-1]
    return [
        ir.AffineMap.get(len(dims), 0, results)
        for results in (
            [image, *own, channel, *pixels],
            [*own, row, channel],
            [image, *own, row, *pixels],
        )
    ]


@dataclass(frozen=True)
class ConvertPointwiseConvolutions(PatternPass):
    """Make convolutions whose window is one point products of matrices.

    ```mlir
    %y = linalg.conv_2d_nchw_fchw
        ins(%x, %w : tensor<2x8x6x10xf16>, tensor<16x8x1x1xf16>) outs(%c)
    ```
    becomes
    ```mlir
    %m = tensor.collapse_shape %w [[0], [1, 2, 3]] : ... into tensor<16x8xf16>
    %y = linalg.generic {(n, c, y, x), (f, c) -> (n, f, y, x)} ins(%x, %m) outs(%c)
    ```
    whose operands are staged step by step, which matrix instructions compute, and which
    reads half precision as it is. Images keep their dimensions, so that windows can be
    connected to products; those with groups and of one or three dimensions likewise.
    For devices on which threads share a tile. Other strides than one are left alone:
    `hoist-stride` is in front of this. So are halves whose pixels are no whole
    fragments of matrix instructions: narrow-windows.
    """

    name: ClassVar[str] = "convert-pointwise-convolutions"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the pattern for each operation on windows."""
        return [(kind, convert) for kind in _WINDOWS]
