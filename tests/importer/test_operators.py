"""Element-wise operators one by one against eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from samples import COLUMN, ROW, SPECIAL, X, Y, bools, positive, whole

Function = Callable[..., Any]
Case = tuple[Function, tuple[torch.Tensor, ...]]

# What libm and torch's own vector functions agree on only roughly is left out there.
UNARY: dict[str, Function] = {
    "abs": torch.abs,
    "ceil": torch.ceil,
    "clamp": lambda x: x.clamp(-1.0, 2.0),
    "clamp-max": lambda x: x.clamp(max=0.5),
    "clamp-min": lambda x: x.clamp(min=0.5),
    "cos": lambda x: torch.cos(x.clamp(-10, 10)),
    "elu": F.elu,
    "erf": torch.erf,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "floor": torch.floor,
    # Torch's own gives nan for infinity.
    "gelu": lambda x: F.gelu(x.clamp(-50, 50)),
    "gelu-tanh": lambda x: F.gelu(x.clamp(-50, 50), approximate="tanh"),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardtanh": F.hardtanh,
    "leaky-relu": lambda x: F.leaky_relu(x, 0.1),
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "log-sigmoid": F.logsigmoid,
    "mish": F.mish,
    "nan-to-num": torch.nan_to_num,
    "neg": lambda x: -x,
    "pow-2": lambda x: x**2,
    "pow-half": lambda x: x**0.5,
    "pow-minus-1": lambda x: x**-1,
    "pow-others": lambda x: (x.abs() ** 4, x.abs() ** 1.5, x**1 + 1, x**0, x**-2, x**3),
    "pow-of": lambda x: 2.0**x,
    "reciprocal": torch.reciprocal,
    "relu": F.relu,
    "relu6": F.relu6,
    "round": torch.round,
    "rsqrt": torch.rsqrt,
    "selu": F.selu,
    "sigmoid": torch.sigmoid,
    "sign": torch.sign,
    "sgn": torch.sgn,
    "silu": F.silu,
    "sin": lambda x: torch.sin(x.clamp(-10, 10)),
    "softplus": F.softplus,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "tanh": torch.tanh,
    "threshold": lambda x: F.threshold(x, 0.2, 3.0),
    "trunc": torch.trunc,
    "frac": torch.frac,
    "isnan": torch.isnan,
    "to-bool": lambda x: x.bool(),
    "scalar-arithmetic": lambda x: (2 - x) * 3.0 / 7 + 1,
    "scalar-comparison": lambda x: (x == 0.5, x != 1, x < 0.1, x >= -1, x <= 2, x > 0),
}


@pytest.mark.sample(54)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("values", [X, X.double(), SPECIAL], ids=["f32", "f64", "edge"])
def test_unary(check: Any, name: str, values: torch.Tensor) -> None:
    reference = check(UNARY[name], values)
    assert not reference.externals


BINARY: dict[str, Case] = {
    "add": (torch.add, (X, Y)),
    "add-alpha": (lambda x, y: torch.add(x, y, alpha=0.5), (X, Y)),
    "add-row": (torch.add, (X, ROW)),
    "add-column": (torch.add, (COLUMN, ROW)),
    "add-scalar-tensor": (torch.add, (X, torch.tensor(2.5))),
    "add-mixed-floats": (torch.add, (X, Y.double())),
    "add-integer-to-float": (torch.add, (X, whole(4, 6))),
    "add-integers": (torch.add, (whole(4, 6), whole(6, seed=1))),
    "add-narrow-integers": (
        torch.add,
        (whole(4, 6, dtype=torch.int32), whole(4, 6, seed=1)),
    ),
    "sub": (lambda x, y: x - y, (X, ROW)),
    "sub-alpha": (lambda x, y: torch.sub(x, y, alpha=2), (X, Y)),
    "mul": (torch.mul, (X, COLUMN)),
    "mul-bool": (torch.mul, (X, bools(4, 6))),
    "mul-integers": (torch.mul, (whole(4, 6), whole(4, 6, seed=1))),
    "div": (torch.div, (X, Y)),
    "div-integers": (torch.div, (whole(4, 6), whole(4, 6, seed=1).abs() + 1)),
    "div-by-zero": (torch.div, (SPECIAL, torch.zeros(8))),
    "maximum": (torch.maximum, (SPECIAL, SPECIAL.flip(0))),
    "minimum": (torch.minimum, (SPECIAL, SPECIAL.flip(0))),
    "maximum-integers": (torch.maximum, (whole(4, 6), whole(4, 6, seed=1))),
    "minimum-integers": (torch.minimum, (whole(4, 6), whole(4, 6, seed=1))),
    "pow": (torch.pow, (positive(4, 6), Y)),
    "eq": (torch.eq, (SPECIAL, SPECIAL.flip(0))),
    "ne": (torch.ne, (SPECIAL, SPECIAL)),
    "lt": (torch.lt, (SPECIAL, SPECIAL.flip(1))),
    "le-mixed": (torch.le, (X, whole(4, 6))),
    "gt-integers": (torch.gt, (whole(4, 6), whole(6))),
    "ge": (torch.ge, (X, ROW)),
    "order-of-booleans": (
        lambda x, y: (x < y, x <= y, y > x, x > y, x >= y, x < x.flip(0), x < y * 0.5),
        (bools(4, 6), whole(4, 6)),
    ),
    "compare-integer-scalar": (lambda x: (x > 2, x == 0.5, x <= -1), (whole(4, 6),)),
    "equal-integers": (lambda x, y: (x == y, x != y), (whole(4, 6), whole(6))),
    "scalar-overloads": (
        lambda x: [
            getattr(torch.ops.aten, name).Scalar(x, 1.5)
            for name in ("add", "sub", "mul", "div")
        ],
        (X,),
    ),
    "logical": (
        lambda x, y: (x & y, x | y, x ^ y, ~x, torch.logical_and(x, y)),
        (bools(4, 6), bools(4, 6, seed=1)),
    ),
    "logical-numbers": (
        lambda x, y: (
            torch.logical_or(x, y),
            torch.logical_not(x),
            torch.logical_xor(x, y),
        ),
        (whole(4, 6), X),
    ),
    "bitwise-integers": (
        lambda x, y: (x & y, x | y, x ^ y, ~x),
        (whole(4, 6), whole(4, 6, seed=1)),
    ),
    "where": (torch.where, (bools(4, 6), X, ROW)),
    "where-scalar": (lambda c, x: torch.where(c, x, 0.0), (bools(6), X)),
    "masked-fill": (
        lambda x, c: x.masked_fill(c, -1e9),
        (X, bools(4, 1)),
    ),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), (X, Y)),
    "addcmul": (lambda x, y, z: torch.addcmul(x, y, z, value=0.5), (X, Y, ROW)),
    "addcdiv": (lambda x, y, z: torch.addcdiv(x, y, z, value=2), (X, Y, positive(6))),
    "logaddexp": (torch.logaddexp, (X, Y)),
    "xlogy": (torch.xlogy, (X, positive(4, 6))),
    "mse": (F.mse_loss, (X, Y)),
    "huber": (F.huber_loss, (X, Y)),
    "smooth-l1": (F.smooth_l1_loss, (X, Y)),
    "glu": (F.glu, (X,)),
    "clamp-integers": (lambda x: x.clamp(-2, 3), (whole(4, 6),)),
    "relu-integers": (F.relu, (whole(4, 6),)),
    "abs-integers": (lambda x: (x.abs(), -x, x.sign()), (whole(4, 6),)),
    "convert": (
        lambda x: (x.double(), x.long(), x.int(), x.bool(), x.to(torch.float32)),
        (X * 3,),
    ),
    "convert-integers": (
        lambda x: (x.float(), x.double(), x.int(), x.bool()),
        (whole(4, 6),),
    ),
    "convert-bools": (lambda x: (x.float(), x.long(), x.int()), (bools(4, 6),)),
}


@pytest.mark.parametrize("name", BINARY)
def test_elementwise(check: Any, name: str) -> None:
    function, inputs = BINARY[name]
    reference = check(function, *inputs)
    assert not reference.externals
