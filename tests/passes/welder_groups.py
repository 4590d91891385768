"""Owns the subgraphs that the Welder paper and its table speak of, as groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from operator_models import access, elementwise, loops

from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.regions import (
    Access,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)

CONVOLUTION, REDUCTION = OperatorKind.CONVOLUTION, OperatorKind.REDUCTION
Shape = tuple[int, ...]


class Builder:
    """Makes a group operator by operator; tensors are numbers."""

    def __init__(self) -> None:
        self._nodes: list[OperatorModel] = []
        self._sources: list[tuple[Source, ...]] = []
        self._inputs = 0

    def input(self) -> Source:
        self._inputs += 1
        return Source(None, 1000 + self._inputs)

    def add(self, node: OperatorModel, *read: Source) -> Source:
        self._nodes.append(node)
        self._sources.append(read)
        return Source(len(self._nodes) - 1, len(self._nodes))

    def group(self) -> Group:
        return Group(tuple(self._nodes), tuple(self._sources))


def operator(
    kind: OperatorKind,
    extents: Shape,
    parallel: Shape,
    reads: Sequence[Access],
    flops: int = 2,
) -> OperatorModel:
    shape = tuple(extents[loop] for loop in parallel)
    numbered = tuple(replace(read, argument=i) for i, read in enumerate(reads))
    write = access(0, shape, loops(*parallel))
    return OperatorModel(kind.value, kind, extents, parallel, numbered, (write,), flops)


def product(batch: Shape, m: int, n: int, k: int, *, shared: bool) -> OperatorModel:
    """A product of matrices for each batch; `shared`: of one right-hand side."""
    outer = tuple(range(len(batch)))
    row, column, depth = (len(batch) + i for i in range(3))
    right: tuple[Shape, Shape] = ((k, n), (depth, column))
    if not shared:
        right = ((*batch, k, n), (*outer, depth, column))
    left = access(0, (*batch, m, k), loops(*outer, row, depth))
    reads = (left, access(1, right[0], loops(*right[1])))
    extents = (*batch, m, n, k)
    return operator(OperatorKind.CONTRACTION, extents, (*outer, row, column), reads)


def pointwise(shape: Shape, *others: Shape, flops: int = 1) -> OperatorModel:
    """Reads a tensor of a shape, and others along the dimensions that are listed."""
    dims = (tuple(range(len(shape))), *others)
    reads = [
        access(i, tuple(shape[d] for d in dim), loops(*dim))
        for i, dim in enumerate(dims)
    ]
    return elementwise("pointwise", shape, reads, flops)


def last_reduced(shape: Shape) -> OperatorModel:
    every = tuple(range(len(shape)))
    reads = [access(0, shape, loops(*every))]
    return operator(OperatorKind.REDUCTION, shape, every[:-1], reads, 1)


def softmax(build: Builder, scores: Source, shape: Shape) -> Source:
    rows = tuple(range(len(shape) - 1))
    largest = build.add(last_reduced(shape), scores)
    exp = build.add(pointwise(shape, rows, flops=9), scores, largest)
    total = build.add(last_reduced(shape), exp)
    return build.add(pointwise(shape, rows, flops=4), exp, total)


def attention(batch: int, rows: int, depth: int, *, values: bool = True) -> Group:
    build = Builder()
    scores = (batch, rows, rows)
    left = product((batch,), rows, rows, depth, shared=False)
    made = build.add(left, build.input(), build.input())
    masked = build.add(pointwise(scores, (2,)), made, build.input())
    shares = softmax(build, masked, scores)
    if values:
        right = product((batch,), rows, depth, rows, shared=False)
        build.add(right, shares, build.input())
    return build.group()


def layers(rows: int, widths: Sequence[int]) -> Group:
    """Linear layers with an activation between them."""
    build = Builder()
    last = build.input()
    for position, (k, n) in enumerate(pairwise(widths)):
        layer = product((), rows, n, k, shared=True)
        last = build.add(layer, last, build.input())
        if position < len(widths) - 2:
            last = build.add(pointwise((rows, n)), last)
    return build.group()


def layer_norm(build: Builder, x: Source, rows: int, width: int) -> Source:
    mean = build.add(last_reduced((rows, width)), x)
    centred = build.add(pointwise((rows, width), (0,)), x, mean)
    variance = build.add(last_reduced((rows, width)), centred)
    return build.add(pointwise((rows, width), (0,), flops=5), centred, variance)


def add_norm(rows: int, width: int, depth: int = 0) -> Group:
    """A sum and its norm, of a product where there is a depth."""
    build = Builder()
    made = build.input()
    if depth:
        linear = product((), rows, width, depth, shared=True)
        made = build.add(linear, made, build.input())
    added = build.add(pointwise((rows, width), (0, 1)), made, build.input())
    layer_norm(build, added, rows, width)
    return build.group()


def norm_linear(rows: int, width: int, made: int) -> Group:
    build = Builder()
    normed = layer_norm(build, build.input(), rows, width)
    build.add(product((), rows, made, width, shared=True), normed, build.input())
    return build.group()


def window(
    kind: OperatorKind,
    sizes: Shape,
    channels: Shape,
    taps: int,
    stride: int = 1,
    *,
    padded: bool = True,
) -> OperatorModel:
    """A window over images of (n, c, h, w): a convolution, or a pooling.

    Args:
        kind: What it is.
        sizes: Extents of the result, (n, c, h, w).
        channels: Channels of the operand for a full convolution, () where each
            channel is by itself.
        taps: Height and width of the window.
        stride: Of the window.
        padded: Whether the operand is padded so that windows hang over its edge.
    """
    images, made, high, wide = sizes
    extents = (images, made, high, wide, *channels, taps, taps)
    down, across = len(extents) - 2, len(extents) - 1
    channel = 4 if channels else 1
    border = taps // 2 if padded else 0
    index = (
        *loops(0, channel),
        LinearIndex(((2, stride), (down, 1)), -border),
        LinearIndex(((3, stride), (across, 1)), -border),
    )
    held = channels[0] if channels else made
    reach = taps - 2 * border
    shape = (images, held, (high - 1) * stride + reach, (wide - 1) * stride + reach)
    around = ((0, 0), (0, 0), (border, border), (border, border))
    reads = [access(0, shape, index, border=around if border else None)]
    if kind is OperatorKind.CONVOLUTION:
        dims = (1, *((4,) if channels else ()), down, across)
        reads.append(access(1, tuple(extents[d] for d in dims), loops(*dims)))
    return operator(kind, extents, (0, 1, 2, 3), reads)


def convolutions(*nodes: OperatorModel) -> Group:
    build = Builder()
    last = build.input()
    for node in nodes:
        others = [build.input() for _ in node.reads[1:]]
        last = build.add(node, last, *others)
    return build.group()


def conv_relu_pool() -> Group:
    made = (64, 64, 112, 112)
    return convolutions(
        window(CONVOLUTION, made, (64,), 3),
        pointwise(made),
        window(REDUCTION, (64, 64, 56, 56), (), 2, 2, padded=False),
    )


def pointwise_depthwise(side: int) -> Group:
    sizes = (64, 144, side, side)
    return convolutions(
        window(CONVOLUTION, sizes, (24,), 1), window(CONVOLUTION, sizes, (), 3)
    )


def convolution_pointwise(channels: int, side: int, *, depthwise: bool) -> Group:
    sizes = (64, channels, side, side)
    first = window(CONVOLUTION, sizes, () if depthwise else (channels,), 3)
    return convolutions(
        first, window(CONVOLUTION, (64, 64, side, side), (channels,), 1)
    )


def scores(*, with_softmax: bool) -> Group:
    """The product of figure 2 of the paper, 98304 x 64 x 128, and its softmax."""
    build = Builder()
    left = product((), 98304, 128, 64, shared=True)
    made = build.add(left, build.input(), build.input())
    if with_softmax:
        softmax(build, made, (98304, 128))
    return build.group()
