"""Owns random calls that compute element by element."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from call_operands import (
    is_bool,
    is_float,
    is_number,
    is_whole,
)
from torch_graphs import Graph, Refused

EXACT_UNARY = (torch.neg, torch.abs, torch.relu, torch.sign, torch.square)
FLOAT_UNARY = (
    torch.exp, torch.tanh, torch.sigmoid, torch.erf, F.gelu, F.silu, torch.sin,
    torch.cos, torch.expm1, F.softplus, F.elu, F.hardswish, F.hardsigmoid, F.mish,
    F.selu, F.softsign, F.logsigmoid, torch.atan, torch.sinc, F.celu,
)  # fmt: skip
EXACT_FLOAT_UNARY = (F.hardtanh, F.relu6, torch.clone, torch.positive, torch.nan_to_num)
POSITIVE_UNARY = (torch.log, torch.sqrt, torch.rsqrt, torch.reciprocal, torch.log1p,
                  torch.log2, torch.log10)  # fmt: skip
STEP_UNARY = (torch.floor, torch.ceil, torch.round, torch.trunc, torch.frac)
BINARY = (torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum)
OPERATORS = (operator.add, operator.sub, operator.mul)
COMPARISONS = (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)
LOGIC = (torch.logical_and, torch.logical_or, torch.logical_xor)
BITS = (torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor)


def unary(g: Graph) -> None:
    value = g.pick(is_number)
    if g.random.random() < 0.5:
        g.call(g.random.choice(EXACT_UNARY), value)
    elif not is_float(value.tensor):
        g.call(
            g.random.choice((torch.exp, torch.sigmoid, torch.tanh)), value, exact=False
        )
    elif g.random.random() < 0.3:
        g.call(g.random.choice(EXACT_FLOAT_UNARY), value)
    else:
        function = g.random.choice(FLOAT_UNARY)
        # Torch's own gelu of infinity is NaN or infinity, as memory lies.
        if function is F.gelu and not bool(value.tensor.isfinite().all()):
            raise Refused
        g.call(function, value, exact=False)


def tanh_gelu(g: Graph) -> None:
    g.call(F.gelu, g.pick(is_float), approximate="tanh", exact=False)


def leaky(g: Graph) -> None:
    g.call(F.leaky_relu, g.pick(is_float), 0.25, exact=False)


def positive_unary(g: Graph) -> None:
    value = g.call(torch.add, g.call(torch.abs, g.pick(is_float)), 0.5)
    g.call(g.random.choice(POSITIVE_UNARY), value, exact=False)


def steps(g: Graph) -> None:
    half = g.call(torch.mul, g.pick(is_float, exact=True), 0.5)
    g.call(g.random.choice(STEP_UNARY), half)


def binary(g: Graph) -> None:
    left = g.pick(is_number)
    right = g.partner(left)
    if g.random.random() < 0.3:
        left, right = right, left
    if torch.bool in (left.tensor.dtype, right.tensor.dtype):
        g.call(g.random.choice((torch.add, torch.mul)), left, right)
        return
    g.call(g.random.choice((*BINARY, *OPERATORS)), left, right)


def with_scalar(g: Graph) -> None:
    value = g.pick()
    scalar = g.random.choice((2, -1, 3, 0.5, 1.5, 0, True))
    g.call(
        g.random.choice((torch.add, torch.mul, operator.add, operator.mul)),
        value,
        scalar,
    )


def scaled_add(g: Graph) -> None:
    left = g.pick(is_number)
    right = g.partner(left, left.tensor.dtype)
    g.call(g.random.choice((torch.add, torch.sub)), left, right, alpha=2)


def reversed_scalar(g: Graph) -> None:
    g.call(torch.rsub, g.pick(is_number), g.random.choice((1, 3)))


def divide(g: Graph) -> None:
    value = g.pick()
    if g.random.random() < 0.4:
        g.call(torch.div, value, g.random.choice((2, 3, -4, 7)), exact=False)
        return
    other = g.call(torch.add, g.call(torch.abs, g.partner(value)), 1)
    g.call(torch.div, value, other, exact=False)


def whole_division(g: Graph) -> None:
    value = g.pick(is_number, exact=True)
    other = g.random.choice((2, 3, -4, 7))
    if g.random.random() < 0.5:
        other = g.call(
            torch.add, g.call(torch.square, g.partner(value, value.tensor.dtype)), 1
        )
        if not g.is_exact(other):
            raise Refused
    kind = g.random.choice(
        (torch.floor_divide, torch.remainder, torch.fmod, "floor", "trunc")
    )
    if isinstance(kind, str):
        g.call(torch.div, value, other, rounding_mode=kind)
    else:
        g.call(kind, value, other)


def power(g: Graph) -> None:
    value = g.pick(is_number)
    exponent = g.random.choice((0, 1, 2, 3, 0.5, -1, -0.5, 2.5))
    if exponent not in (0, 1, 2, 3):
        value = g.call(torch.add, g.call(torch.abs, value), 1)
    g.call(torch.pow, value, exponent, exact=False)


def compare(g: Graph) -> None:
    left = g.pick(exact=True)
    right: Any = g.random.choice((0, 1, -2, 0.5))
    if g.random.random() < 0.7:
        right = g.partner(left)
        if not g.is_exact(right):
            raise Refused
    g.call(g.random.choice(COMPARISONS), left, right)


def logic(g: Graph) -> None:
    left = g.pick(exact=True)
    right = g.partner(left)
    if not g.is_exact(right):
        raise Refused
    g.call(g.random.choice(LOGIC), left, right)


def invert(g: Graph) -> None:
    value = g.pick(exact=True)
    g.call(g.random.choice((torch.logical_not, torch.bitwise_not, torch.isnan)), value)


def bits(g: Graph) -> None:
    left = g.pick(is_whole)
    g.call(g.random.choice(BITS), left, g.partner(left, left.tensor.dtype))


def choose(g: Graph) -> None:
    condition = g.pick(is_bool)
    left = g.partner(condition, g.pick().tensor.dtype)
    right: Any = g.random.choice((0.0, 1))
    if g.random.random() < 0.7:
        same = None if g.random.random() < 0.2 else left.tensor.dtype
        right = g.partner(condition, same)
    g.call(torch.where, condition, left, right)


def mask(g: Graph) -> None:
    value = g.pick()
    g.call(
        torch.masked_fill,
        value,
        g.partner(value, torch.bool),
        g.random.choice((0, 1, -7)),
    )


def clamp(g: Graph) -> None:
    value = g.pick(is_number)
    low, high = g.random.choice(
        ((-1, 1), (0, None), (None, 2), (1, 3), (2, -2), (-0.5, 0.5))
    )
    g.call(torch.clamp, value, low, high)


def blend(g: Graph) -> None:
    value = g.pick(is_float)
    other = g.partner(value, value.tensor.dtype)
    if g.random.random() < 0.5:
        g.call(torch.lerp, value, other, 0.25, exact=False)
        return
    g.call(torch.addcmul, value, other, g.partner(value, value.tensor.dtype), value=2)
