"""Owns random reductions and normalisations, and tensors of other types."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from call_operands import (
    a_dim,
    has_dims,
    image,
    is_float,
    is_number,
    matrix,
    some_dims,
)
from random_tensors import DTYPES, FLOATS, INTEGERS
from torch import Tensor
from torch_graphs import Graph, Refused


def cast(g: Graph) -> None:
    dtype = g.random.choice(DTYPES)
    whole = dtype not in FLOATS
    value = g.pick(exact=whole)
    if whole and is_float(value.tensor):
        limit = 100 if dtype in INTEGERS else 1e9
        if not bool((value.tensor.abs() < limit).all()):
            raise Refused
        if dtype is torch.uint8:
            raise Refused
    narrow = dtype in (torch.float16, torch.bfloat16)
    g.call(
        torch.Tensor.to, value, dtype, exact=not narrow or _fits(value.tensor, dtype)
    )


def _fits(tensor: Tensor, dtype: torch.dtype) -> bool:
    return torch.equal(tensor.to(dtype).to(tensor.dtype), tensor)


def alike(g: Graph) -> None:
    value = g.pick()
    g.call(g.random.choice((torch.zeros_like, torch.ones_like)), value)


def filled(g: Graph) -> None:
    g.call(torch.full, g.shape(), g.random.choice((2, 0.5, True)))


def counted(g: Graph) -> None:
    kind = g.random.random()
    if kind < 0.4:
        g.call(torch.arange, g.random.randint(1, 40))
    elif kind < 0.7:
        g.call(
            torch.arange,
            3,
            g.random.randint(4, 60),
            2,
            dtype=g.random.choice(DTYPES[:17]),
        )
    else:
        g.call(torch.eye, g.random.randint(1, 20))


TOTALS = (torch.sum, torch.mean, torch.amax, torch.amin)
WITH_PLACES = (torch.max, torch.min)


def total(g: Graph) -> None:
    value = g.pick()
    function = g.random.choice((*TOTALS, torch.sum))
    if function is torch.mean and not is_float(value.tensor):
        function = torch.sum
    dims = some_dims(g, value)
    keep = g.random.random() < 0.4
    if dims is None:
        whole = {torch.amax: torch.max, torch.amin: torch.min}.get(function, function)
        g.call(whole, value, exact=function is not torch.mean)
        return
    g.call(function, value, dim=dims, keepdim=keep, exact=function is not torch.mean)


def total_as(g: Graph) -> None:
    value = g.pick(exact=True)
    dtype = g.random.choice((torch.float32, torch.float64, torch.int64, torch.int32))
    if is_float(value.tensor) and dtype not in FLOATS:
        raise Refused
    g.call(torch.sum, value, dim=a_dim(g, value), dtype=dtype)


def extreme(g: Graph) -> None:
    value = g.pick(has_dims(1), exact=True)
    g.call(
        g.random.choice(WITH_PLACES),
        value,
        a_dim(g, value),
        keepdim=g.random.random() < 0.5,
    )


def place(g: Graph) -> None:
    value = g.pick(is_number, exact=True)
    dim = a_dim(g, value) if g.random.random() < 0.7 else None
    g.call(g.random.choice((torch.argmax, torch.argmin)), value, dim)


def truth(g: Graph) -> None:
    value = g.pick(exact=True)
    function = g.random.choice((torch.any, torch.all))
    if g.random.random() < 0.3:
        g.call(function, value)
        return
    g.call(function, value, dim=a_dim(g, value), keepdim=g.random.random() < 0.5)


def spread(g: Graph) -> None:
    value = g.pick(is_float)
    function = g.random.choice((torch.var, torch.std, torch.var_mean))
    correction = g.random.choice((0, 1))
    more = {"correction": correction, "keepdim": g.random.random() < 0.5}
    g.call(function, value, dim=some_dims(g, value), exact=False, **more)


def length(g: Graph) -> None:
    value = g.pick(is_float)
    kind = g.random.choice((1, 2, float("inf")))
    g.call(torch.linalg.vector_norm, value, kind, dim=some_dims(g, value), exact=False)


def log_sum(g: Graph) -> None:
    value = g.pick(is_float)
    g.call(
        torch.logsumexp,
        value,
        a_dim(g, value),
        keepdim=g.random.random() < 0.5,
        exact=False,
    )


def running_total(g: Graph) -> None:
    value = g.pick(is_number)
    g.call(torch.cumsum, value, a_dim(g, value))


def softmax(g: Graph) -> None:
    value = g.pick(is_float)
    function = g.random.choice((F.softmax, F.softmax, F.log_softmax, F.softmin))
    g.call(function, value, dim=a_dim(g, value), exact=False)


def layer_norm(g: Graph) -> None:
    value = g.pick(lambda t: is_float(t) and t.dim() >= 1)
    count = g.random.randint(1, min(2, value.tensor.dim()))
    shape = list(value.tensor.shape[-count:])
    weight, bias = (
        matrix(g, shape, value.tensor.dtype) if g.random.random() < 0.6 else None
        for _ in range(2)
    )
    g.call(F.layer_norm, value, shape, weight, bias, 0.1, exact=False)


def rms_norm(g: Graph) -> None:
    value = g.pick(lambda t: is_float(t) and t.dim() >= 1)
    shape = list(value.tensor.shape[-1:])
    g.call(
        F.rms_norm, value, shape, matrix(g, shape, value.tensor.dtype), 0.1, exact=False
    )


def batch_norm(g: Graph) -> None:
    value = image(g, g.random.choice((1, 2, 2)))
    shape, dtype = [value.tensor.shape[1]], value.tensor.dtype
    mean = matrix(g, shape, dtype)
    variance = g.input(shape, dtype, range(1, 5))
    scale = [matrix(g, shape, dtype), matrix(g, shape, dtype)]
    if g.random.random() < 0.3:
        scale = [None, None]  # type: ignore[list-item]
    g.call(F.batch_norm, value, mean, variance, *scale, eps=0.1, exact=False)


def training_norm(g: Graph) -> None:
    value = image(g, g.random.choice((1, 2, 2)))
    shape, dtype = [value.tensor.shape[1]], value.tensor.dtype
    mean, variance = (g.input(shape, dtype, range(1, 5), dense=True) for _ in range(2))
    for statistics in (mean, variance):
        g.expect_rounding(statistics)
    g.call(F.batch_norm, value, mean, variance, training=True, eps=0.1, exact=False)


def group_norm(g: Graph) -> None:
    value = image(g, g.random.choice((1, 2, 2)))
    channels = value.tensor.shape[1]
    groups = g.random.choice(
        [n for n in (1, 2, 4, channels) if n and channels % n == 0]
    )
    shape = [channels]
    weight = matrix(g, shape, value.tensor.dtype) if g.random.random() < 0.6 else None
    g.call(F.group_norm, value, groups, weight, None, 0.1, exact=False)


def normalise(g: Graph) -> None:
    value = g.pick(lambda t: is_float(t) and t.dim() >= 1)
    g.call(F.normalize, value, dim=a_dim(g, value), eps=0.5, exact=False)
