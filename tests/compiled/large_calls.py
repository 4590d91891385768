"""Owns random calls on tensors that are made in many tiles, ragged ones at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from call_operands import a_dim, is_float, matrix
from random_tensors import DTYPES, FLOATS
from torch import Tensor
from torch_graphs import Graph, Refused, Value

PRIMES = (97, 127, 131, 197, 251, 257, 331, 397, 509, 521, 613, 769, 911, 1021)
SIZES = (*PRIMES, *PRIMES, 96, 128, 192, 256, 384, 512, 1000, 1024)
FEW = (1, 1, 2, 3, 5, 7)
CHANNELS = (16, 32, 48, 64, 64, 64, 80, 96, 128)
SMOOTH = (F.relu, F.silu, torch.tanh, torch.sigmoid, torch.abs, torch.square)
LENGTHS = (99_991, 100_003, 131_072, 200_003, 262_147, 500_009, 1_000_003)


def a_float(g: Graph) -> torch.dtype:
    """Return a type, single precision in most cases."""
    return g.random.choice((*(torch.float32,) * 6, *FLOATS))


def ragged(g: Graph) -> Value:
    """Add an input whose extents few tiles divide."""
    shape = [g.random.choice(SIZES) for _ in range(g.random.randint(1, 3))]
    while math.prod(shape) > g.most // 2:
        shape[g.random.randrange(len(shape))] = g.random.choice(FEW)
    return g.input(shape, g.random.choice((*(torch.float32,) * 12, *DTYPES)))


def large(rank: int | None = None) -> Callable[[Tensor], bool]:
    """Return a test for tensors of floating point that take several tiles."""
    return lambda tensor: (
        is_float(tensor) and tensor.numel() > 5000 and rank in (None, tensor.dim())
    )


def a_large(g: Graph, rank: int | None = None) -> Value:
    """Return a large value, a new input if there is none."""
    try:
        if g.random.random() < 0.7:
            return g.pick(large(rank))
    except Refused:
        pass
    shape = [g.random.choice(SIZES) for _ in range(2)]
    if rank == 1:
        shape = [g.random.choice(LENGTHS)]
    elif rank == 3 or rank == 4:
        shape = [*(g.random.choice(FEW) for _ in range(rank - 2)), *shape]
    return g.input(shape, a_float(g))


def touch(g: Graph, value: Value) -> Value:
    """Return what some cheap calls make of a value."""
    for _ in range(g.random.choice((0, 1, 1, 2, 3))):
        kind = g.random.random()
        if kind < 0.5:
            value = g.call(g.random.choice(SMOOTH), value, exact=False)
        elif kind < 0.7:
            value = g.call(torch.mul, value, 0.5)
        else:
            value = g.call(torch.add, value, g.partner(value, value.tensor.dtype))
    return value


def minimal_filtering(g: Graph) -> None:
    """Add a convolution that may be computed with fewer products."""
    channels, outer = g.random.choice(CHANNELS), g.random.choice(CHANNELS)
    try:
        value = g.pick(lambda t: t.dim() == 4 and t.shape[1] in CHANNELS)
        channels = value.tensor.shape[1]
    except Refused:
        size = [g.random.choice((5, 7, 9, 13, 14, 17, 28, 31, 33)) for _ in range(2)]
        value = g.input([g.random.choice((1, 1, 2, 3)), channels, *size], torch.float32)
    if value.tensor.dtype is not torch.float32:
        raise Refused
    bias = matrix(g, [outer], torch.float32) if g.random.random() < 0.5 else None
    weight = matrix(g, [outer, channels, 3, 3], torch.float32)
    padding = g.random.choice((0, 1, 1, 1, 2, (1, 0)))
    made = g.call(F.conv2d, value, weight, bias, padding=padding, exact=False)
    made = g.call(torch.mul, made, 1 / 64, exact=False)
    if made.tensor.shape == value.tensor.shape and g.random.random() < 0.6:
        made = g.call(torch.add, made, value)
    elif g.random.random() < 0.3:
        made = g.call(torch.add, made, g.input(made.tensor.shape, torch.float32))
    if g.random.random() < 0.6:
        g.call(g.random.choice((F.relu, F.silu, torch.tanh)), made, exact=False)


def joined(g: Graph) -> None:
    """Add a concatenation of what products and other calls make, and a reader."""
    first = a_large(g, g.random.choice((2, 3)))
    dim = a_dim(g, first)
    parts = [first]
    for _ in range(g.random.choice((1, 1, 2, 3))):
        shape = list(first.tensor.shape)
        if g.random.random() < 0.7:
            shape[dim] = g.random.choice((*FEW, *PRIMES[:6], 64))
        part = matrix(g, shape, first.tensor.dtype)
        if g.random.random() < 0.3:
            weight = matrix(g, [shape[-1], shape[-1]], first.tensor.dtype)
            part = g.call(torch.matmul, part, weight)
            part = g.call(torch.mul, part, 1 / 64)
        parts.append(touch(g, part))
    g.random.shuffle(parts)
    read(g, touch(g, g.call(torch.cat, parts, dim)))


def read(g: Graph, value: Value) -> None:
    """Add a reader of a large value."""
    shape, dtype = list(value.tensor.shape), value.tensor.dtype
    kind = g.random.random()
    if kind < 0.3:
        weight = matrix(g, [g.random.choice((17, 64, 131)), shape[-1]], dtype)
        g.call(torch.mul, g.call(F.linear, value, weight), 1 / 64, exact=False)
    elif kind < 0.45:
        g.call(F.softmax, value, dim=a_dim(g, value), exact=False)
    elif kind < 0.6:
        g.call(F.layer_norm, value, shape[-1:], None, None, 0.1, exact=False)
    elif kind < 0.7:
        g.call(torch.mean, value, dim=a_dim(g, value), exact=False)
    elif kind < 0.8:
        g.call(torch.split, value, g.random.choice((17, 64, 131)), a_dim(g, value))
    elif kind < 0.9:
        g.call(torch.transpose, value, a_dim(g, value), a_dim(g, value))
    else:
        g.call(torch.flatten, value)


REDUCTIONS: tuple[Callable[..., Any], ...] = (
    torch.sum, torch.sum, torch.mean, torch.var, torch.std, torch.amax, torch.amin,
    torch.argmax, torch.argmin, torch.any, torch.all, torch.logsumexp,
    torch.linalg.vector_norm, torch.var_mean, torch.max, torch.min,
)  # fmt: skip
# Torch's own way leaves NaN where there are infinities.
OF_FINITE = frozenset({torch.var, torch.std, torch.var_mean})
OF_FLOATS = OF_FINITE | {torch.mean, torch.linalg.vector_norm, torch.logsumexp}
OF_EXACT = frozenset(
    {torch.argmax, torch.argmin, torch.any, torch.all, torch.max, torch.min}
)


def long_reduction(g: Graph) -> None:
    """Add a reduction over so many elements that it is made in parts."""
    dtype = g.random.choice((*(torch.float32,) * 6, *DTYPES))
    length = g.random.choice(LENGTHS)
    others = g.random.choice(((), (), (1,), (2,), (3,)))
    front = g.random.random() < 0.5
    value = g.input([*others, length] if front else [length, *others], dtype)
    if dtype in FLOATS and g.random.random() < 0.5:
        value = touch(g, value)
    reduced(g, value, len(others) if front else 0)


def reduced(g: Graph, value: Value, dim: int) -> None:
    """Add a reduction along a dimension, or two that read the same."""
    for _ in range(g.random.choice((1, 1, 2))):
        function = g.random.choice(REDUCTIONS)
        if function in OF_FLOATS and not is_float(value.tensor):
            function = torch.sum
        if function in OF_FINITE and g.special:
            function = torch.amax
        if function in OF_EXACT and not g.is_exact(value):
            function = torch.amax
        if function in (torch.argmax, torch.argmin) and (
            value.tensor.dtype is torch.bool
        ):
            function = torch.any
        exact = function not in OF_FLOATS
        g.call(function, value, dim=dim, keepdim=g.random.random() < 0.5, exact=exact)


def any_reduction(g: Graph) -> None:
    """Add a reduction of a large value along any dimension."""
    value = g.pick(lambda t: t.dim() >= 1 and t.numel() > 5000)
    reduced(g, value, a_dim(g, value))


def streamed(g: Graph) -> None:
    """Add attention over odd lengths, masked or not, in one call or in several."""
    batch, heads = g.random.choice((1, 1, 2)), g.random.choice((1, 2, 3))
    rows, columns = g.random.choice((1, 33, *PRIMES)), g.random.choice(PRIMES)
    depth = g.random.choice((8, 16, 24, 32, 64))
    dtype = g.random.choice((*(torch.float32,) * 6, torch.float64, torch.bfloat16))
    query = g.input([batch, heads, rows, depth], dtype)
    key = matrix(g, [batch, heads, columns, depth], dtype)
    value = matrix(g, [batch, heads, columns, depth], dtype)
    mask = a_mask(g, g.random.choice(([rows, columns], [batch, 1, 1, columns])), dtype)
    if g.random.random() < 0.4:
        more: dict[str, Any] = {"attn_mask": mask} if mask is not None else {}
        if mask is None and g.random.random() < 0.5:
            more["is_causal"] = True
        g.call(F.scaled_dot_product_attention, query, key, value, exact=False, **more)
        return
    scores = g.call(torch.matmul, query, g.call(torch.transpose, key, -2, -1))
    scores = g.call(torch.mul, scores, depth**-0.5, exact=False)
    if mask is not None and mask.tensor.dtype is torch.bool:
        scores = g.call(torch.masked_fill, scores, mask, -math.inf, finite=False)
    elif mask is not None:
        scores = g.call(torch.add, scores, mask, finite=False)
    shares = g.call(F.softmax, scores, dim=-1, exact=False, finite=False)
    if g.random.random() < 0.5:
        shares = g.call(torch.nan_to_num, shares)
    g.call(torch.matmul, shares, value, finite=False)


def a_mask(g: Graph, shape: list[int], dtype: torch.dtype) -> Value | None:
    """Return a mask or none; some of its rows are masked all over."""
    kind = g.random.random()
    if kind < 0.4:
        return None
    if kind < 0.6:
        return g.input(shape, torch.bool)
    mask = g.input(shape, dtype, dense=True)
    return g.call(torch.masked_fill, mask, hidden(g, shape), -math.inf, finite=False)


def hidden(g: Graph, shape: list[int]) -> Value:
    """Add an input that is true for some elements and maybe whole rows."""
    rows = g.input([*shape[:-1], 1], torch.int64, range(-9, 2))
    each = g.input(shape, torch.int64, range(-1, 2))
    whole = g.call(torch.gt, rows, g.random.choice((0, 1)))
    return g.call(torch.logical_or, whole, g.call(torch.gt, each, 0))


def wide_product(g: Graph) -> None:
    """Add a product whose extents few tiles divide, with calls before and behind."""
    value = touch(g, a_large(g, g.random.choice((2, 2, 3, 4))))
    shape, dtype = list(value.tensor.shape), value.tensor.dtype
    columns = g.random.choice((1, 3, 17, 64, *PRIMES))
    batch = shape[:-2] if g.random.random() < 0.3 else []
    weight = matrix(g, [*batch, shape[-1], columns], dtype)
    made = g.call(torch.matmul, value, weight)
    made = touch(g, g.call(torch.mul, made, 1 / 64))
    if g.random.random() < 0.5:
        read(g, made)


def normed(g: Graph) -> None:
    """Add a norm over any one dimension, in single calls."""
    value = a_large(g)
    dim = a_dim(g, value)
    mean = g.call(torch.mean, value, dim=dim, keepdim=True, exact=False)
    apart = g.call(torch.sub, value, mean)
    square = g.call(torch.square, apart)
    spread = g.call(torch.mean, square, dim=dim, keepdim=True, exact=False)
    scale = g.call(torch.rsqrt, g.call(torch.add, spread, 0.1), exact=False)
    touch(g, g.call(torch.mul, apart, scale))


def turned(g: Graph) -> None:
    """Add a transposition of a large value and a reader of both."""
    value = a_large(g, g.random.choice((2, 3)))
    other = g.call(torch.transpose, value, -1, -2)
    if other.tensor.shape == value.tensor.shape:
        g.call(torch.add, value, other)
    else:
        touch(g, g.call(torch.matmul, other, g.call(torch.mul, value, 1 / 64)))


def write_large(g: Graph) -> None:
    """Add a write into a part of a large value, of what is made of another part."""
    value = a_large(g)
    dim = a_dim(g, value)
    extent = value.tensor.shape[dim]
    width = g.random.randint(1, extent)
    starts = [g.random.randint(0, extent - width) for _ in range(2)]
    target, source = (
        g.call(torch.narrow, value, dim, start, width) for start in starts
    )
    g.write(torch.Tensor.copy_, target, g.call(torch.mul, source, -1))
    touch(g, value)
