"""Operators one by one: numbers, dtypes and strides against eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

Function = Callable[..., Any]
Case = tuple[Function, tuple[torch.Tensor, ...]]


def floats(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(seed + 7 * len(shape))
    return torch.randn(shape, generator=generator, dtype=dtype)


def positive(*shape: int, seed: int = 0) -> Any:
    return floats(*shape, seed=seed).abs() + 0.1


def whole(*shape: int, seed: int = 0, dtype: torch.dtype = torch.int64) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-5, 6, shape, generator=generator, dtype=dtype)


def bools(*shape: int, seed: int = 0) -> Any:
    return floats(*shape, seed=seed) > 0


X = floats(4, 6)
Y = floats(4, 6, seed=1)
ROW = floats(6, seed=2)
COLUMN = floats(4, 1, seed=3)
IMAGE = floats(2, 4, 9, 9)
INFINITY = float("inf")
SPECIAL = torch.tensor(
    [
        [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5],
        [INFINITY, -INFINITY, float("nan"), 88.0, -88.0, 1e-30, 3.0, -3.0],
    ]
)
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
    "pow": (torch.pow, (positive(4, 6), Y)),
    "eq": (torch.eq, (SPECIAL, SPECIAL.flip(0))),
    "ne": (torch.ne, (SPECIAL, SPECIAL)),
    "lt": (torch.lt, (SPECIAL, SPECIAL.flip(1))),
    "le-mixed": (torch.le, (X, whole(4, 6))),
    "gt-integers": (torch.gt, (whole(4, 6), whole(6))),
    "ge": (torch.ge, (X, ROW)),
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


def rows_written(x: torch.Tensor) -> torch.Tensor:
    copy = x + 1
    copy[1:3] = 0.5
    copy[:, ::2] += 1
    return copy


STRUCTURE: dict[str, Case] = {
    "view": (lambda x: x.view(3, 8) * 1, (X,)),
    "view-infer": (lambda x: x.view(2, -1, 3) + 1, (X,)),
    "reshape-of-permuted": (lambda x: x.t().reshape(2, 12) + 1, (X,)),
    "flatten": (lambda x: x.flatten(1) + 1, (IMAGE,)),
    "unflatten": (lambda x: x.unflatten(1, (2, 3)) + 1, (X,)),
    "permute": (lambda x: x.permute(0, 2, 3, 1) + 1, (IMAGE,)),
    "permute-contiguous": (lambda x: x.permute(2, 0, 3, 1).contiguous(), (IMAGE,)),
    "transpose": (lambda x: x.transpose(-1, 1) * 2, (IMAGE,)),
    "expand": (lambda x: x.expand(3, 4, 5) + 1, (COLUMN,)),
    "expand-as-add": (lambda x, y: x.expand_as(y) + y, (ROW, X)),
    "squeeze": (lambda x: (x.squeeze() + 1, x.squeeze(1) + 1), (COLUMN,)),
    "unsqueeze": (lambda x: x.unsqueeze(0).unsqueeze(-1) * 2, (X,)),
    "select": (lambda x: x[1] + x[-1], (X,)),
    "slice": (lambda x: x[1:3, ::2] + 1, (X,)),
    "slice-negative": (lambda x: x[-3:, :-1] + 1, (X,)),
    "index-new-axis": (lambda x: x[:, None, 1:] * 2, (X,)),
    "cat": (lambda x, y: torch.cat([x, y, x], 1), (X, Y)),
    "cat-rows-mixed": (lambda x, y: torch.cat([x, y.double()]), (X, Y)),
    "stack": (lambda x, y: torch.stack([x, y], -1), (X, Y)),
    "chunk": (lambda x: [p * 2 for p in x.chunk(3, 1)], (X,)),
    "split": (lambda x: [p * 2 for p in x.split([1, 5], 1)], (X,)),
    "unbind": (lambda x: [p * 2 for p in x.unbind(0)], (X,)),
    "repeat": (lambda x: x.repeat(2, 1, 3), (X,)),
    "repeat-interleave": (lambda x: x.repeat_interleave(2, 1), (X,)),
    "flip": (lambda x: x.flip(1), (X,)),
    "roll": (lambda x: x.roll(2, 1) + 1, (X,)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), (X,)),
    "pad-negative": (lambda x: F.pad(x, (-1, 2)), (X,)),
    "pad-reflect": (lambda x: F.pad(x, (1, 2, 1, 1), mode="reflect"), (IMAGE,)),
    "tril": (lambda x: x.tril(), (X,)),
    "triu": (lambda x: x.triu(1), (X,)),
    "pixel-shuffle": (lambda x: F.pixel_shuffle(x, 2), (IMAGE,)),
    "narrow": (lambda x: x.narrow(1, 2, 3) * 2, (X,)),
    "movedim": (lambda x: x.movedim(1, -1) * 2, (IMAGE,)),
    "diagonal": (lambda x: x.diagonal() * 2, (X,)),
    "unfold": (lambda x: x.unfold(1, 3, 2) * 2, (X,)),
    "arange": (lambda x: x + torch.arange(6), (X,)),
    "arange-steps": (lambda x: x + torch.arange(1, 13, 2), (X,)),
    "arange-floats": (lambda x: x + torch.arange(0, 3, 0.5), (X,)),
    "linspace": (lambda x: x + torch.linspace(0, 1, 6), (X,)),
    "row-written": (lambda x: (x + 1)[1:3].fill_(2) + x[1:3], (X,)),
    "rows-written": (rows_written, (X,)),
    "factories": (
        lambda x: x + torch.ones(6) + torch.zeros(4, 1) + torch.full((6,), 2.5),
        (X,),
    ),
    "factories-like": (
        lambda x: x * torch.ones_like(x) + torch.full_like(x, 3) + x.new_zeros(6),
        (X,),
    ),
    "constant": (lambda x: x * torch.tensor([1.0, 2, 3, 4, 5, 6]), (X,)),
    "constant-bools": (lambda x: x * torch.tensor([True, False] * 3), (X,)),
    "constant-scalar": (lambda x: x * torch.tensor(2.5) + torch.tensor(3), (X,)),
    "constant-long": (lambda x: torch.tensor([[3, 1], [4, 1]]) * x, (whole(2, 2),)),
    "eye": (lambda x: x @ torch.eye(6), (X,)),
    "meshgrid": (
        lambda x, y: torch.meshgrid(x[:, 0] + 1, y, indexing="ij"),
        (X, ROW),
    ),
    "zero-size": (lambda x: (x[:, :0] + 1, x[:0].sum(0)), (X,)),
    "scalar": (lambda x: x * 2 + 1, (torch.tensor(3.0),)),
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_structure(check: Any, name: str) -> None:
    function, inputs = STRUCTURE[name]
    check(function, *inputs)


REDUCTIONS: dict[str, Case] = {
    "sum": (lambda x: x.sum(), (X,)),
    "sum-dim": (lambda x: (x.sum(0), x.sum(-1), x.sum((0, 1))), (X,)),
    "sum-kept": (lambda x: x / x.sum(-1, keepdim=True), (positive(4, 6),)),
    "sum-middle": (lambda x: x.sum((1, 3)), (IMAGE,)),
    "sum-bools": (lambda x: (x.sum(), x.sum(1)), (bools(4, 6),)),
    "sum-integers": (lambda x: x.sum(1, keepdim=True), (whole(4, 6),)),
    "sum-narrow-integers": (lambda x: x.sum(1), (whole(4, 6, dtype=torch.int32),)),
    "sum-as-double": (lambda x: x.sum(1, dtype=torch.float64), (X,)),
    "mean": (lambda x: (x.mean(), x.mean(1), x.mean((0, 1), keepdim=True)), (X,)),
    "mean-image": (lambda x: x.mean((2, 3)), (IMAGE,)),
    "amax": (lambda x: (x.amax(1), x.amax((0, 1)), x.amax(0, True)), (X,)),
    "amin": (lambda x: (x.amin(1), x.amin(0, True)), (X,)),
    "amax-nan": (lambda x: (x.amax(1), x.amin(1)), (SPECIAL,)),
    "max-values": (lambda x: x.max(1).values + 1, (X,)),
    "max-pair": (lambda x: tuple(x.max(1)), (SPECIAL,)),
    "max-all": (lambda x: (x.max(), x.min()), (X,)),
    "max-integers": (lambda x: (x.amax(1), x.max()), (whole(4, 6),)),
    "argmax": (lambda x: (x.argmax(1), x.argmin()), (SPECIAL,)),
    "var": (lambda x: (x.var(1), x.std(0, keepdim=True), x.var()), (X,)),
    "var-mean": (lambda x: torch.var_mean(x, 1, correction=0), (X,)),
    "any-all": (lambda x: (x.any(), x.all(), x.any(1), x.all(0)), (bools(4, 6),)),
    "any-floats": (lambda x: (x.any(1), x.all()), (X,)),
    "prod": (lambda x: x.prod(1), (X,)),
    "norm": (lambda x: (x.norm(), x.norm(dim=1), F.normalize(x)), (X,)),
    "norm-1": (lambda x: torch.linalg.vector_norm(x, 1, 1), (X,)),
    "logsumexp": (lambda x: x.logsumexp(1), (X,)),
    "softmax": (lambda x: (x.softmax(-1), x.softmax(0)), (X,)),
    "softmax-hidden": (lambda x: x.softmax(-1), (torch.full((2, 3), -float("inf")),)),
    "softmax-double": (lambda x: x.softmax(1), (X.double(),)),
    "log-softmax": (lambda x: F.log_softmax(x, -1), (X * 20,)),
    "cross-entropy": (F.cross_entropy, (X, torch.tensor([0, 5, 2, 2]))),
    "cumsum": (lambda x: x.cumsum(1) * 2, (X,)),
    "sort": (lambda x: x.sort(1), (X,)),
    "topk": (lambda x: x.topk(2)[0] + 1, (X,)),
    "one-axis-of-one": (lambda x: (x.sum(1), x.amax(1, True), x.mean(1)), (COLUMN,)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(check: Any, name: str) -> None:
    function, inputs = REDUCTIONS[name]
    check(function, *inputs)


NARROW = [torch.bfloat16, torch.float16, torch.int8, torch.uint8, torch.int16]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_narrow_types_keep_torchs_precision(check: Any, dtype: torch.dtype) -> None:
    x = (floats(4, 6) * 50).abs().to(dtype)

    def function(x: torch.Tensor) -> Any:
        return x + x, x.float() * 2, x.sum(1), x == 7, x.t(), torch.cat([x, x])

    check(function, x)
