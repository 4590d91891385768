"""Kernels lowered to the gpu dialect compute what torch computes, without races."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magweld.passes.pipelines.gpu import BlockShape

TOLERANCE = 2e-5


@dataclass(frozen=True)
class Case:
    """A kernel template with sizes, inputs and what it should compute."""

    kernel: str
    sizes: dict[str, int]
    shapes: tuple[tuple[int, ...], ...]
    reference: Callable[..., Tensor]
    shape: BlockShape = field(default_factory=lambda: BlockShape(32, 8, 49152))

    def __str__(self) -> str:
        sizes = "-".join(f"{k}{v}" for k, v in self.sizes.items())
        return f"{self.kernel}-{sizes}-{self.shape.threads}"


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * 0.125 + mask, -1) @ v


def layer_norm(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x + y, (x.shape[-1],), w, b)


def convolution(stride: int, sizes: dict[str, int]) -> Case:
    """A convolution of an image that is padded already, its rows in tiles."""
    rows = (sizes["T"] - 1) * stride + sizes["K"]
    return Case(
        "convolution",
        {**sizes, "S": stride, "R": rows},
        (
            (1, sizes["C"], sizes["P"], sizes["P"]),
            (sizes["O"], sizes["C"], sizes["K"], sizes["K"]),
        ),
        lambda x, w: F.conv2d(x, w, stride=stride),
    )


def neighbours(x: Tensor) -> Tensor:
    """Sums of three in a row with zeros around."""
    return F.pad(x, (1, 1)).unfold(1, 3, 1).sum(-1)


def linear_relu(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(F.linear(a, b, bias))


def linear_case(m: int, n: int, k: int, tm: int, tn: int, threads: int) -> Case:
    sizes = {"M": m, "N": n, "K": k, "TM": tm, "TN": tn}
    shape = BlockShape(threads, 8, 49152)
    return Case("linear_relu", sizes, ((m, k), (n, k), (n,)), linear_relu, shape)


CASES = [
    Case("bias_relu", {"M": 8, "N": 32, "T": 4}, ((8, 32), (32,)),
         lambda x, b: torch.relu(x + b)),
    Case("bias_gelu", {"M": 6, "N": 49, "T": 3}, ((6, 49), (49,)),
         lambda x, b: F.gelu(x + b)),
    Case("residual_layer_norm", {"M": 6, "N": 48, "T": 2},
         ((6, 48), (6, 48), (48,), (48,)), layer_norm),
    Case("residual_layer_norm", {"M": 3, "N": 197, "T": 1},
         ((3, 197), (3, 197), (197,), (197,)), layer_norm),
    Case("masked_softmax", {"B": 3, "S": 16}, ((3, 16, 16), (16,)),
         lambda x, m: torch.softmax(x + m, -1)),
    Case("masked_softmax", {"B": 2, "S": 7}, ((2, 7, 7), (7,)),
         lambda x, m: torch.softmax(x + m, -1)),
    Case("attention", {"B": 2, "S": 16, "D": 8, "T": 8},
         ((2, 16, 8), (2, 16, 8), (2, 16, 8), (16,)), attention),
    Case("matmul", {"M": 16, "N": 24, "K": 40, "TM": 8, "TN": 12},
         ((16, 40), (40, 24)), torch.mm),
    Case("matmul", {"M": 7, "N": 3, "K": 49, "TM": 7, "TN": 3},
         ((7, 49), (49, 3)), torch.mm),
    linear_case(16, 16, 32, 8, 16, 32),
    linear_case(8, 8, 16, 4, 4, 64),
    linear_case(12, 18, 19, 6, 9, 32),
    # The sums of the first product are made in registers, and read in another way.
    Case("two_products", {"M": 16, "K": 40, "L": 24, "N": 12, "TM": 8},
         ((16, 40), (40, 24), (12, 24)), lambda a, b, c: a @ b @ c.mT),
    Case("mean_inner", {"C": 6, "H": 7, "T": 2, "COUNT": 49}, ((6, 7, 7),),
         lambda x: x.mean((1, 2))),
    Case("sum_middle", {"B": 3, "S": 10, "C": 6}, ((3, 10, 6),),
         lambda x: x.sum(1)),
    Case("sum_kept", {"B": 6, "S": 96, "T": 2}, ((6, 96),),
         lambda x: x.sum(1, keepdim=True)),
    Case("sum_kept", {"B": 3, "S": 7, "T": 3}, ((3, 7),),
         lambda x: x.sum(1, keepdim=True)),
    Case("swap_last", {"B": 2, "X": 6, "Y": 5}, ((2, 6, 5),),
         lambda x: x.transpose(1, 2)),
    convolution(1, {"C": 3, "O": 4, "K": 3, "P": 10, "H": 8, "T": 4}),
    convolution(2, {"C": 2, "O": 6, "K": 3, "P": 13, "H": 6, "T": 3}),
    convolution(1, {"C": 5, "O": 8, "K": 1, "P": 7, "H": 7, "T": 7}),
    Case("max_pool", {"C": 6, "P": 11, "H": 5, "T": 3}, ((1, 6, 11, 11),),
         lambda x: F.max_pool2d(x, 3, 2)),
    Case("padded_window", {"C": 3, "W": 60, "T": 10, "R": 12, "B": 14}, ((3, 60),),
         neighbours),
    Case("swap_middle", {"B": 2, "X": 3, "Y": 4, "D": 8}, ((2, 3, 4, 8),),
         lambda x: x.transpose(1, 2)),
]  # fmt: skip


@pytest.mark.sample(8)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernel_gives_what_torch_gives(case: Case, build, run) -> None:
    generator = torch.Generator().manual_seed(
        len(case.shapes) + math.prod(case.sizes.values()) % 97
    )
    inputs = [torch.randn(s, generator=generator) for s in case.shapes]
    expected = case.reference(*(i.double() for i in inputs)).contiguous().numpy()
    module = build(case.kernel, case.sizes, case.shape)
    result = run(module, [i.numpy() for i in inputs], expected.shape)
    error = np.abs(result - expected).max()
    assert error <= TOLERANCE * np.abs(expected).max()
