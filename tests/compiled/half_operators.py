"""Owns operators on f16 and bf16 with what their results may differ from torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Function = Callable[[Tensor, Tensor], Any]

EXACT: dict[str, Function] = {
    "abs": lambda x, y: x.abs(),
    "add": torch.add,
    "add-bool": lambda x, y: x + (y > 0),
    "add-number": lambda x, y: x + 0.1,
    "add-single": lambda x, y: x + y.float(),
    "add-whole": lambda x, y: x + (y > 0).long() * 1001,
    "cat": lambda x, y: torch.cat([x, y]),
    "ceil": lambda x, y: x.ceil(),
    "chain": lambda x, y: (x + y) * x - y,
    "clamp": lambda x, y: x.clamp(-0.1, 0.3),
    "div": torch.div,
    "divide-number": lambda x, y: 0.1 / x,
    "equal-number": lambda x, y: x == 0.1,
    "floor": lambda x, y: x.floor(),
    "hardshrink": lambda x, y: F.hardshrink(x, 0.3),
    "isnan": lambda x, y: x.isnan(),
    "less": torch.lt,
    "less-number": lambda x, y: x < 0.1,
    "masked_fill": lambda x, y: x.masked_fill(y > 0, 0.1),
    "maximum": torch.maximum,
    "mul": torch.mul,
    "mul-number": lambda x, y: x * 0.1,
    "mul-overflow": lambda x, y: x * 1e5,
    "nan_to_num": lambda x, y: x.nan_to_num(),
    "neg": lambda x, y: -x,
    "outer": lambda x, y: x[:7, None] * y[None, :129],
    "pow-2": lambda x, y: x**2,
    "pow-3": lambda x, y: x**3,
    "pow-minus-2": lambda x, y: x**-2,
    "reciprocal": lambda x, y: x.reciprocal(),
    "relu": lambda x, y: x.relu(),
    "round": lambda x, y: x.round(),
    "rsub": lambda x, y: 0.1 - x,
    "sgn": lambda x, y: x.sgn(),
    "softshrink": lambda x, y: F.softshrink(x, 0.3),
    "sub": torch.sub,
    "threshold": lambda x, y: F.threshold(x, 0.3, 0.1),
    "to-bf16": lambda x, y: x.to(torch.bfloat16) * 2,
    "to-double": lambda x, y: x.double(),
    "to-f16": lambda x, y: x.to(torch.float16) * 2,
    "to-whole": lambda x, y: x.nan_to_num(0, 9, -9).clamp(-1e4, 1e4).int(),
    "transpose": lambda x, y: x.view(256, -1).t() * 2,
    "trunc": lambda x, y: x.trunc(),
    "where": lambda x, y: torch.where(x < y, x, y),
}
"""Torch computes them in f32 and rounds once: every bit is torch's."""

NEAR: dict[str, Function] = {
    "addcmul": lambda x, y: torch.addcmul(x, x, y),
    "cos": lambda x, y: x.clamp(-100, 100).cos(),
    "elu": lambda x, y: F.elu(x),
    "exp": lambda x, y: x.exp(),
    "expm1": lambda x, y: x.expm1(),
    "gelu": lambda x, y: F.gelu(x),
    "gelu-tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "hardswish": lambda x, y: F.hardswish(x),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.1),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "log": lambda x, y: x.log(),
    "log1p": lambda x, y: x.log1p(),
    "mish": lambda x, y: F.mish(x),
    "pow": lambda x, y: x.abs() ** 1.7,
    "rsqrt": lambda x, y: x.rsqrt(),
    "sigmoid": lambda x, y: x.sigmoid(),
    "silu": lambda x, y: F.silu(x),
    "softplus": lambda x, y: F.softplus(x),
    "sqrt": lambda x, y: x.sqrt(),
    "tanh": lambda x, y: x.tanh(),
}
"""Torch's functions of f32 are others: an ulp of a half, and a rounding of f32 at 1."""

REDUCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "amax": lambda x: x.amax(-1),
    "avg_pool": lambda x: F.avg_pool2d(x.view(2, 16, 48, -1), 2),
    "batch_norm": lambda x: F.batch_norm(
        x.view(2, 16, 48, -1), *x[:2, :16].abs(), *x[2:4, :16]
    ),
    "group_norm": lambda x: F.group_norm(x.view(4, 64, -1), 8),
    "layer_norm": lambda x: F.layer_norm(x, (x.shape[-1],), x[0], x[1]),
    "log_softmax": lambda x: x.log_softmax(-1),
    "max_pool": lambda x: F.max_pool2d(x.view(2, 16, 48, -1), 2),
    "mean": lambda x: x.mean(-1),
    "mean-columns": lambda x: x.mean(0, keepdim=True),
    "norm": lambda x: x.norm(dim=-1),
    "softmax": lambda x: x.softmax(-1),
    "softmax-columns": lambda x: x.softmax(0),
    "std": lambda x: x.std(0),
    "sum": lambda x: x.sum(),
    "sum-columns": lambda x: x.sum(0),
    "sum-rows": lambda x: x.sum(-1),
    "sum-single": lambda x: x.sum(-1, dtype=torch.float32),
    "var": lambda x: x.var(-1),
}
"""Torch sums in f32: two ulps of the result's type, of its largest element."""

PRODUCTS: dict[str, Callable[[Tensor], Any]] = {
    "addmm": lambda x: torch.addmm(x[0, :256], x, x.t(), beta=0.5, alpha=2.0),
    "attention": lambda x: F.scaled_dot_product_attention(*_heads(x), is_causal=True),
    "attention-masked": lambda x: F.scaled_dot_product_attention(
        *_heads(x), attn_mask=x[:64, :64] > -1
    ),
    "baddbmm": lambda x: torch.baddbmm(
        x[:, :64].reshape(4, 64, 64), x.view(4, 64, 768), _turned(x)
    ),
    "bmm": lambda x: x.view(4, 64, 768) @ _turned(x),
    "convolution": lambda x: F.conv2d(*_image(x), padding=1),
    "depthwise": lambda x: F.conv2d(
        _image(x)[0], x[5, :108].view(12, 1, 3, 3), groups=12
    ),
    "convolution-points": lambda x: F.conv2d(
        _image(x)[0], x[5, :240].view(20, 12, 1, 1), x[6, :20]
    ),
    "convolution-points-apart": lambda x: F.conv2d(
        _image(x)[0], x[5, :240].view(20, 12, 1, 1), stride=2
    ),
    "convolution-points-odd": lambda x: F.conv2d(
        x[:15].view(1, 15, 32, 24), x[5, :75].view(5, 15, 1, 1)
    ),
    "convolution-line": lambda x: F.conv1d(
        x[:12].view(1, 12, 768), x[5, :240].view(20, 12, 1), x[6, :20]
    ),
    "depthwise-line": lambda x: F.conv1d(
        x[:12].view(1, 12, 768), x[5, :372].view(12, 1, 31), padding=15, groups=12
    ),
    "dot": lambda x: torch.dot(x[0], x[1]),
    "linear": lambda x: F.linear(x[:33], x[:100], x[0, :100]),
    "linear-one-row": lambda x: F.linear(x[:1], x[:100], x[0, :100]),
    "mixed": lambda x: (
        F.linear(x[:9].float(), x[:100].float()).to(x.dtype) * x[:9, :100]
    ),
    "mm": lambda x: x.t()[:33] @ x[:, :50],
    "mv": lambda x: x @ x[0],
}
"""Sums of products in f32, rounded once, with the bias inside: as for reductions."""


def _heads(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    heads = x.view(4, 64, 12, 64).transpose(1, 2)
    return heads, heads, heads


def _turned(x: Tensor) -> Tensor:
    return x.view(4, 64, 768).transpose(1, 2)


def _image(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[:16].view(1, 12, 32, 32), x[20:23, :576].reshape(16, 12, 3, 3)
