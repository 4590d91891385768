"""Owns the building of convolutions of single points, and of the images they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import ir, linalg, tensor
from magweld.dialects.integers import i64
from magweld.passes.ir.linalg_builder import build_generic


def read_points(image: Any, sizes: Sequence[int], read: Sequence[ir.AffineExpr]) -> Any:
    """Emit a tensor of some sizes whose elements are those of an image.

    Args:
        image: Where it reads.
        sizes: One for each dimension of the result.
        read: Where each element lies in the image, of the dimensions of the result.
    """
    element = ir.RankedTensorType(image.type).element_type
    empty = tensor.EmptyOp(list(sizes), element).result
    rank = len(sizes)
    maps = [ir.AffineMap.get(rank, 0, list(read)), ir.AffineMap.get_identity(rank)]
    return build_generic([image], [empty], maps, lambda values: values[:1]).results[0]


def convolve_points(
    op: linalg.Conv2DNchwFchwOp, image: Any, weights: Any
) -> linalg.Conv2DNchwFchwOp:
    """Build the result of a convolution by one with windows of one point.

    Args:
        op: What is built has its type, and adds to what it adds to.
        image: A pixel for each of the result.
        weights: Those of one point each.
    """
    one = i64(1)
    ones = ir.DenseElementsAttr.get([one, one], ir.VectorType.get([2], one.type))
    product = linalg.Conv2DNchwFchwOp(
        [op.results[0].type],
        [image, weights],
        list(op.outputs),
        strides=ones,
        dilations=ones,
    )
    linalg.fill_builtin_region(product.operation)
    return product
