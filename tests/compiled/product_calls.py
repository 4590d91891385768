"""Owns random products of matrices, convolutions and other windows."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from call_operands import (
    extent,
    image,
    is_float,
    is_number,
    matrix,
)
from torch_graphs import Graph, Refused


def product(g: Graph) -> None:
    value = g.pick(lambda t: is_number(t) and 1 <= t.dim() <= 4)
    shape, dtype = list(value.tensor.shape), value.tensor.dtype
    if len(shape) == 1:
        other = matrix(
            g, [shape[0]] if g.random.random() < 0.4 else [shape[0], extent(g)], dtype
        )
    else:
        batch = shape[:-2] if g.random.random() < 0.5 else []
        batch = [1 if g.random.random() < 0.2 else e for e in batch]
        other = matrix(g, [*batch, shape[-1], extent(g)], dtype)
    g.call(g.random.choice((torch.matmul, operator.matmul)), value, other)


def transposed_product(g: Graph) -> None:
    value = g.pick(lambda t: is_float(t) and t.dim() in (2, 3))
    shape, dtype = list(value.tensor.shape), value.tensor.dtype
    side = g.random.random() < 0.5
    other = matrix(g, [*shape[:-2], extent(g), shape[-1]], dtype)
    if side:
        g.call(torch.matmul, value, g.call(torch.transpose, other, -1, -2))
    else:
        g.call(
            torch.matmul,
            g.call(getattr, value, "mT"),
            matrix(g, [*shape[:-2], shape[-2], extent(g)], dtype),
        )


def linear(g: Graph) -> None:
    value = g.pick(lambda t: is_float(t) and 1 <= t.dim() <= 4)
    inner, dtype, outer = value.tensor.shape[-1], value.tensor.dtype, extent(g)
    bias = matrix(g, [outer], dtype) if g.random.random() < 0.6 else None
    g.call(F.linear, value, matrix(g, [outer, inner], dtype), bias)


def add_product(g: Graph) -> None:
    value = g.pick(lambda t: is_float(t) and t.dim() == 2)
    rows, inner = value.tensor.shape
    columns, dtype = extent(g), value.tensor.dtype
    start = matrix(
        g, g.random.choice(([columns], [rows, columns], [1, columns], [rows, 1])), dtype
    )
    g.call(
        torch.addmm,
        start,
        value,
        matrix(g, [inner, columns], dtype),
        beta=g.random.choice((1, 2, 0)),
        alpha=g.random.choice((1, 2)),
    )


def batches(g: Graph) -> None:
    value = g.pick(lambda t: is_float(t) and t.dim() == 3)
    batch, rows, inner = value.tensor.shape
    dtype, columns = value.tensor.dtype, extent(g)
    other = matrix(g, [batch, inner, columns], dtype)
    if g.random.random() < 0.5:
        g.call(torch.bmm, value, other)
        return
    g.call(torch.baddbmm, matrix(g, [batch, rows, columns], dtype), value, other)


def einsum(g: Graph) -> None:
    value = g.pick(lambda t: is_float(t) and t.dim() in (2, 3))
    dtype = value.tensor.dtype
    if value.tensor.dim() == 2:
        a, b = value.tensor.shape
        equation, shape = g.random.choice(
            (
                ("ab,cb->ac", [extent(g), b]),
                ("ab,ac->cb", [a, extent(g)]),
                ("ab,b->a", [b]),
                ("ab,c->abc", [3]),
                ("ab,ab->b", [a, b]),
                ("ab,cb->ca", [extent(g), b]),
            )
        )
    else:
        a, b, c = value.tensor.shape
        equation, shape = g.random.choice(
            (
                ("abc,adc->abd", [a, extent(g), c]),
                ("abc,dc->adb", [extent(g), c]),
                ("abc,cd->dab", [c, extent(g)]),
                ("abc,bd->acd", [b, extent(g)]),
                ("abc,acb->a", [a, c, b]),
            )
        )
    g.call(torch.einsum, equation, value, matrix(g, shape, dtype))


def attention(g: Graph) -> None:
    batch, heads, rows, columns, depth = (
        g.random.choice(e)
        for e in ((1, 2), (1, 3), (1, 7, 16, 33), (5, 16, 32, 65), (4, 8, 16, 17))
    )
    dtype = g.random.choice((torch.float32, torch.float32, torch.float64))
    query = matrix(g, [batch, heads, rows, depth], dtype)
    key, value = (matrix(g, [batch, heads, columns, depth], dtype) for _ in range(2))
    more: dict[str, Any] = {}
    kind = g.random.random()
    if kind < 0.25:
        more["is_causal"] = True
    elif kind < 0.45:
        more["attn_mask"] = g.input([rows, columns], torch.bool)
    elif kind < 0.65:
        more["attn_mask"] = g.input([batch, 1, rows, columns], dtype)
    if g.random.random() < 0.3:
        more["scale"] = 0.3
    g.call(F.scaled_dot_product_attention, query, key, value, exact=False, **more)


def convolution(g: Graph) -> None:
    dims = g.random.choice((1, 2, 2, 2, 2, 3))
    value = image(g, dims)
    channels, dtype = value.tensor.shape[1], value.tensor.dtype
    if channels == 0:
        raise Refused
    groups = g.random.choice(
        [n for n in (1, 1, 1, 2, 4, channels) if channels % n == 0]
    )
    outer = groups * g.random.choice((1, 1, 2, 3, 8, 16))
    kernel = [g.random.choice((1, 2, 3, 3, 5, 7)) for _ in range(dims)]
    if g.random.random() < 0.6:
        kernel = [kernel[0]] * dims
    more: dict[str, Any] = {"groups": groups}
    more["stride"] = g.random.choice((1, 1, 1, 2, 3))
    more["dilation"] = g.random.choice((1, 1, 1, 2))
    more["padding"] = g.random.choice((0, 1, 2, kernel[0] // 2))
    function: Any = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    shape = [outer, channels // groups, *kernel]
    if g.random.random() < 0.15:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[
            dims - 1
        ]
        shape = [channels, outer // groups, *kernel]
    elif g.random.random() < 0.1 and more["stride"] == 1:
        more["padding"] = "same"
    bias = matrix(g, [outer], dtype) if g.random.random() < 0.5 else None
    # Fast algorithms of libraries round.
    g.call(function, value, matrix(g, shape, dtype), bias, exact=False, **more)


def pool(g: Graph) -> None:
    dims = g.random.choice((1, 2, 2, 2, 3))
    value = image(g, dims)
    kernel = g.random.choice((1, 2, 2, 3, 3, 5))
    more: dict[str, Any] = {
        "stride": g.random.choice((None, 1, 2, 3)),
        "padding": g.random.choice((0, 0, kernel // 2)),
        "ceil_mode": g.random.random() < 0.25,
    }
    if g.random.random() < 0.5:
        function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[dims - 1]
        more["dilation"] = g.random.choice((1, 1, 2))
        g.call(function, value, kernel, **more)
        return
    more["count_include_pad"] = g.random.random() < 0.5
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[dims - 1]
    g.call(function, value, kernel, exact=False, **more)


def adaptive_pool(g: Graph) -> None:
    value = image(g, 2)
    size = g.random.choice((1, 2, 3, (1, 2)))
    if g.random.random() < 0.7:
        g.call(F.adaptive_avg_pool2d, value, size, exact=False)
    else:
        g.call(F.adaptive_max_pool2d, value, size)


def resize(g: Graph) -> None:
    value = image(g, 2)
    more: dict[str, Any] = {"mode": g.random.choice(("nearest", "bilinear", "bicubic"))}
    if more["mode"] != "nearest":
        more["align_corners"] = g.random.random() < 0.5
    if g.random.random() < 0.5:
        more["scale_factor"] = g.random.choice((2, 0.5, 1.5))
    else:
        more["size"] = [g.random.choice((4, 7, 16)), g.random.choice((5, 9, 16))]
    g.call(F.interpolate, value, exact=False, **more)


def shuffle(g: Graph) -> None:
    value = image(g, 2)
    function = g.random.choice((F.pixel_shuffle, F.pixel_unshuffle))
    g.call(function, value, 2)


def patches(g: Graph) -> None:
    g.call(
        F.unfold,
        image(g, 2),
        g.random.choice((2, 3)),
        padding=1,
        stride=g.random.choice((1, 2)),
    )
