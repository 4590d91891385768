"""Owns random calls that move elements: shapes, indices, writes."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from call_operands import (
    a_dim,
    extent,
    has_dims,
    image,
    is_float,
    is_number,
    matrix,
    subscript,
)
from random_tensors import DTYPES
from torch_graphs import Graph, Refused


def reshape(g: Graph) -> None:
    value = g.pick(has_dims(1))
    shape = list(value.tensor.shape)
    kind = g.random.random()
    function = g.random.choice((torch.reshape, torch.reshape, torch.Tensor.view))
    if kind < 0.3:
        g.call(function, value, [-1])
    elif kind < 0.6 and len(shape) > 1:
        at = g.random.randrange(len(shape) - 1)
        g.call(
            function, value, [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]]
        )
    else:
        at = g.random.randrange(len(shape))
        factors = [n for n in (1, 2, 3, 4, 5, 8) if shape[at] and shape[at] % n == 0]
        if not factors:
            raise Refused
        factor = g.random.choice(factors)
        parts = g.random.choice(
            ([factor, shape[at] // factor], [shape[at] // factor, factor])
        )
        g.call(function, value, [*shape[:at], *parts, *shape[at + 1 :]])


def turn(g: Graph) -> None:
    value = g.pick(has_dims(2))
    rank = value.tensor.dim()
    if g.random.random() < 0.5:
        g.call(torch.transpose, value, a_dim(g, value), a_dim(g, value))
    else:
        g.call(torch.permute, value, g.random.sample(range(rank), rank))


def flatten(g: Graph) -> None:
    g.call(torch.flatten, g.pick(has_dims(2)), g.random.choice((0, 1)))


def squeeze(g: Graph) -> None:
    value = g.pick()
    if g.random.random() < 0.4:
        g.call(torch.squeeze, value)
    else:
        g.call(torch.unsqueeze, value, g.random.randint(0, value.tensor.dim()))


def widen(g: Graph) -> None:
    value = g.pick(lambda t: 1 in t.shape and t.dim() < 5)
    shape = [
        3 if e == 1 and g.random.random() < 0.8 else -1 for e in value.tensor.shape
    ]
    if g.random.random() < 0.3:
        shape.insert(0, 2)
    g.call(torch.Tensor.expand, value, shape)


def part(g: Graph) -> None:
    value = g.pick(has_dims(1))
    result = subscript(g, value)
    if 0 in value.tensor[result].shape and g.random.random() < 0.9:
        raise Refused
    g.call(operator.getitem, value, result)


def flip(g: Graph) -> None:
    value = g.pick(has_dims(1))
    if g.random.random() < 0.5:
        g.call(torch.flip, value, [a_dim(g, value)])
    else:
        g.call(torch.roll, value, g.random.choice((1, 2, -1)), a_dim(g, value))


def join(g: Graph) -> None:
    value = g.pick(has_dims(1))
    dim = a_dim(g, value)
    parts = [value]
    for _ in range(g.random.randint(1, 3)):
        shape = list(value.tensor.shape)
        if g.random.random() < 0.6:
            shape[dim] = extent(g)
        dtype = (
            value.tensor.dtype if g.random.random() < 0.9 else g.random.choice(DTYPES)
        )
        parts.append(matrix(g, shape, dtype))
    g.random.shuffle(parts)
    g.call(torch.cat, parts, dim)


def stack(g: Graph) -> None:
    value = g.pick()
    other = matrix(g, list(value.tensor.shape), value.tensor.dtype)
    g.call(
        torch.stack,
        [value, other, value][: g.random.randint(2, 3)],
        g.random.randint(0, value.tensor.dim()),
    )


def split(g: Graph) -> None:
    value = g.pick(has_dims(1))
    dim = a_dim(g, value)
    if g.random.random() < 0.5:
        g.call(torch.split, value, g.random.randint(1, 40), dim)
    else:
        g.call(torch.chunk, value, g.random.randint(2, 3), dim)


def rejoin(g: Graph) -> None:
    """Add slices of one value, some of them changed, and their concatenation."""
    value = g.pick(has_dims(1))
    dim = a_dim(g, value)
    if not value.tensor.shape[dim]:
        raise Refused
    parts = g.call(torch.chunk, value, g.random.randint(2, 5), dim)
    for number, taken in enumerate(parts):
        if is_float(taken.tensor) and g.random.random() < 0.3:
            parts[number] = g.call(g.random.choice((torch.neg, torch.abs)), taken)
    if g.random.random() < 0.6:
        g.random.shuffle(parts)
    elif g.random.random() < 0.5:
        parts = parts[1:] or parts
    joined = g.call(torch.cat, parts, dim)
    if g.random.random() < 0.5:
        cut = g.random.randint(0, joined.tensor.shape[dim] - 1)
        g.call(torch.narrow, joined, dim, cut, joined.tensor.shape[dim] - cut)


def repeat(g: Graph) -> None:
    value = g.pick()
    if g.random.random() < 0.6:
        g.call(
            torch.Tensor.repeat,
            value,
            [g.random.choice((1, 2, 3)) for _ in value.tensor.shape],
        )
    else:
        g.call(torch.repeat_interleave, value, 2, a_dim(g, value))


def pad(g: Graph) -> None:
    value = g.pick(has_dims(1))
    count = g.random.randint(1, min(3, value.tensor.dim()))
    kind = g.random.random()
    if kind < 0.7:
        low = -1 if g.random.random() < 0.2 else 0
        amounts = [g.random.randint(low, 3) for _ in range(2 * count)]
        g.call(F.pad, value, amounts, value=g.random.choice((0, 1, -2)))
    else:
        mode = g.random.choice(("reflect", "replicate", "circular"))
        g.call(F.pad, image(g, 2), [1, 2, 0, 1], mode=mode)


def triangle(g: Graph) -> None:
    g.call(
        g.random.choice((torch.tril, torch.triu)),
        g.pick(has_dims(2)),
        g.random.choice((-1, 0, 1, 2)),
    )


def diagonal(g: Graph) -> None:
    g.call(torch.diagonal, g.pick(has_dims(2)), g.random.choice((-1, 0, 1)), 0, -1)


def windows(g: Graph) -> None:
    value = g.pick(has_dims(1, 4))
    g.call(
        torch.Tensor.unfold,
        value,
        a_dim(g, value),
        g.random.choice((1, 2, 3)),
        g.random.choice((1, 2)),
    )


def rows(g: Graph) -> None:
    value = g.pick(lambda t: t.dim() >= 1 and t.shape[0] > 0)
    size = value.tensor.shape[0]
    dtype = g.random.choice((torch.int64, torch.int64, torch.int32))
    ids = g.input(g.shape(g.random.choice((1, 1, 2)), 60), dtype, range(size))
    if g.random.random() < 0.4 and is_float(value.tensor) and value.tensor.dim() == 2:
        g.call(F.embedding, ids, value)
    elif ids.tensor.dim() == 1 and g.random.random() < 0.4:
        g.call(torch.index_select, value, 0, ids)
    else:
        g.call(operator.getitem, value, ids)


def elements(g: Graph) -> None:
    value = g.pick(lambda t: t.dim() >= 1 and t.numel() > 0)
    dim = a_dim(g, value)
    shape = [min(e, 9) for e in value.tensor.shape]
    ids = g.input(shape, torch.int64, range(value.tensor.shape[dim]))
    if g.random.random() < 0.6:
        g.call(torch.gather, value, dim, ids)
    else:
        source = matrix(g, shape, value.tensor.dtype)
        g.call(torch.scatter_add, value, dim, ids, source)


def select(g: Graph) -> None:
    value = g.pick(lambda t: t.dim() >= 1 and t.numel() > 0)
    dim = a_dim(g, value)
    ids = g.input([g.random.randint(1, 9)], torch.int64, range(value.tensor.shape[dim]))
    g.call(torch.index_select, value, dim, ids)


def one_hot(g: Graph) -> None:
    g.call(F.one_hot, g.input(g.shape(1, 40), torch.int64, range(5)), 6)


def sort(g: Graph) -> None:
    value = g.pick(has_dims(1), exact=True)
    g.call(torch.sort, value, dim=a_dim(g, value), stable=True)


def write(g: Graph) -> None:
    target = g.pick(is_number)
    function = g.random.choice(
        (torch.Tensor.add_, torch.Tensor.mul_, torch.Tensor.sub_, torch.Tensor.copy_)
    )
    other: Any = g.random.choice((1, 2, -1))
    if function is torch.Tensor.copy_ or g.random.random() < 0.6:
        other = g.partner(target, target.tensor.dtype)
    g.write(function, target, other)


def write_alone(g: Graph) -> None:
    target = g.pick(is_float)
    function = g.random.choice(
        (torch.Tensor.relu_, torch.Tensor.neg_, torch.Tensor.zero_)
    )
    g.write(function, target)


def write_part(g: Graph) -> None:
    target = g.pick(has_dims(1))
    index = subscript(g, target)
    other: Any = g.random.choice((0, 1, 3))
    shape = list(target.tensor[index].shape)
    if g.random.random() < 0.6:
        other = matrix(g, shape, target.tensor.dtype)
    g.write(operator.setitem, target, index, other)


def write_masked(g: Graph) -> None:
    target = g.pick()
    mask_ = g.partner(target, torch.bool)
    g.write(torch.Tensor.masked_fill_, target, mask_, 1)
