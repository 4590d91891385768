"""Compares compiled kernels with torch, over even and awkward extents."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Case:
    kernel: str
    sizes: dict[str, int]
    inputs: Callable[[], tuple[Tensor, ...]]
    reference: Callable[..., Tensor]
    tolerance: float = 1e-5

    def __str__(self) -> str:
        return "-".join([self.kernel, *(f"{k}{v}" for k, v in self.sizes.items())])


def _pointwise(m: int, n: int, t: int) -> list[Case]:
    sizes = {"M": m, "N": n, "T": t}

    def inputs() -> tuple[Tensor, ...]:
        return torch.randn(m, n), torch.randn(n)

    return [
        Case("bias_gelu", sizes, inputs, lambda x, b: F.gelu(x + b)),
        Case("bias_relu", sizes, inputs, lambda x, b: torch.relu(x + b)),
    ]


def _layer_norm(m: int, n: int, t: int) -> Case:
    return Case(
        "residual_layer_norm",
        {"M": m, "N": n, "T": t},
        lambda: (
            torch.randn(m, n),
            torch.randn(m, n),
            torch.randn(n),
            torch.randn(n),
        ),
        lambda x, y, w, b: F.layer_norm(x + y, (n,), w, b),
    )


def _softmax(b: int, s: int) -> Case:
    return Case(
        "masked_softmax",
        {"B": b, "S": s},
        lambda: (torch.randn(b, s, s), torch.randn(s)),
        lambda x, mask: torch.softmax(x + mask, -1),
    )


def _attention(b: int, s: int, d: int, t: int) -> Case:
    return Case(
        "attention",
        {"B": b, "S": s, "D": d, "T": t},
        lambda: (*(torch.randn(b, s, d) for _ in range(3)), torch.randn(s)),
        lambda q, k, v, mask: torch.softmax(q @ k.mT * 0.125 + mask, -1) @ v,
    )


def _products(m: int, k: int, n: int, tm: int, tn: int) -> list[Case]:
    sizes = {"M": m, "K": k, "N": n, "TM": tm, "TN": tn}
    return [
        Case(
            "matmul",
            sizes,
            lambda: (torch.randn(m, k), torch.randn(k, n)),
            torch.mm,
        ),
        Case(
            "linear_relu",
            sizes,
            lambda: (torch.randn(m, k), torch.randn(n, k), torch.randn(n)),
            lambda a, b, bias: torch.relu(F.linear(a, b, bias)),
        ),
        Case(
            "matmul_of_columns",
            sizes,
            lambda: (torch.randn(k, m), torch.randn(k, n)),
            lambda a, b: a.mT @ b,
        ),
    ]


def _batch_norm(c: int, h: int, t: int) -> Case:
    return Case(
        "batch_norm_add_relu",
        {"C": c, "H": h, "T": t},
        lambda: (
            *(torch.randn(1, c, h, h) for _ in range(2)),
            torch.randn(c),
            torch.rand(c) + 0.5,
            torch.randn(c),
            torch.randn(c),
        ),
        lambda x, y, *stats: torch.relu(F.batch_norm(x, *stats) + y),
    )


def _convolution(c: int, o: int, h: int, t: int, k: int, s: int) -> Case:
    p, r = (h - 1) * s + k, (t - 1) * s + k
    return Case(
        "convolution",
        {"C": c, "O": o, "H": h, "T": t, "K": k, "S": s, "P": p, "R": r},
        lambda: (torch.randn(1, c, p, p), torch.randn(o, c, k, k)),
        lambda x, w: F.conv2d(x, w, stride=s),
    )


def _movements(b: int, x: int, y: int, d: int) -> list[Case]:
    return [
        Case(
            "swap_middle",
            {"B": b, "X": x, "Y": y, "D": d},
            lambda: (torch.randn(b, x, y, d),),
            lambda v: v.transpose(1, 2),
            0.0,
        ),
        Case(
            "swap_last",
            {"B": b, "X": x, "Y": d},
            lambda: (torch.randn(b, x, d),),
            lambda v: v.transpose(1, 2),
            0.0,
        ),
    ]


def _reductions(c: int, h: int, t: int) -> list[Case]:
    return [
        Case(
            "mean_inner",
            {"C": c, "H": h, "COUNT": h * h, "T": t},
            lambda: (torch.randn(c, h, h),),
            lambda x: x.mean((1, 2)),
        ),
        Case(
            "sum_middle",
            {"B": c, "S": h, "C": t},
            lambda: (torch.randn(c, h, t),),
            lambda x: x.sum(1),
        ),
        Case(
            "max_pool",
            {"C": c, "P": 2 * h + 2, "H": h, "T": t},
            lambda: (torch.randn(1, c, 2 * h + 2, 2 * h + 2),),
            lambda x: F.max_pool2d(x, 3, 2)[:, :, :h, :h],
            0.0,
        ),
    ]


CASES = [
    *_pointwise(512, 1536, 8),
    *_pointwise(7, 197, 1),
    *_pointwise(6, 3, 3),
    _layer_norm(512, 384, 16),
    _layer_norm(7, 49, 7),
    _layer_norm(6, 3, 2),
    _layer_norm(3, 197, 1),
    _softmax(96, 64),
    _softmax(3, 197),
    _softmax(2, 7),
    _attention(12, 64, 32, 64),
    _attention(2, 197, 64, 197),
    _attention(3, 49, 32, 7),
    _attention(2, 7, 3, 7),
    *_products(512, 384, 1536, 128, 256),
    # Rows that are pages apart, the last block with fewer of them.
    *_products(67, 1024, 100, 67, 100),
    *_products(49, 197, 97, 49, 97),
    *_products(64, 192, 49, 64, 49),
    *_products(37, 100, 117, 37, 117),
    *_products(16, 130, 49, 16, 49),
    *_products(7, 5, 3, 7, 3),
    *_products(1, 64, 48, 1, 48),
    _batch_norm(64, 56, 2),
    _batch_norm(3, 7, 1),
    _convolution(16, 32, 28, 7, 3, 1),
    _convolution(3, 24, 14, 14, 7, 2),
    _convolution(5, 37, 7, 1, 1, 2),
    _convolution(1, 3, 3, 3, 2, 3),
    *_movements(8, 64, 12, 32),
    *_movements(2, 49, 3, 7),
    *_movements(3, 17, 5, 33),
    *_reductions(64, 56, 4),
    *_reductions(6, 7, 3),
]


@pytest.mark.sample(20)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernel_gives_what_torch_gives(case: Case, build_template) -> None:
    inputs = case.inputs()
    expected = case.reference(*inputs).contiguous()
    kernel = build_template(case.kernel, **case.sizes)
    result = kernel(*inputs, torch.full_like(expected, torch.nan))
    error = (result - expected).abs().max()
    assert error <= case.tolerance * expected.abs().max()
    assert "llvm.intr.exp" not in kernel.lowered


def test_tiles_may_run_in_any_ranges(build_template) -> None:
    kernel = build_template("bias_relu", M=12, N=33, T=2)
    x, b, out = torch.randn(12, 33), torch.randn(33), torch.full((12, 33), torch.nan)
    assert kernel.signature.tiles == 6
    for low, high in ((4, 6), (0, 0), (0, 1), (1, 4)):
        kernel.run_tiles(low, high, x, b, out)
    torch.testing.assert_close(out, torch.relu(x + b))


@pytest.mark.parametrize("ranges", [[(0, 6)], [(4, 6), (0, 1), (1, 4)]])
def test_borders_hold_in_any_ranges_of_tiles(
    ranges: list[tuple[int, int]], build_template
) -> None:
    kernel = build_template("padded_window", C=3, W=60, T=10, R=12, B=14)
    assert kernel.signature.tiles == 6
    x, out = torch.randn(3, 60), torch.full((3, 60), torch.nan)
    for low, high in ranges:
        kernel.run_tiles(low, high, x, out)
    expected = F.conv1d(x[:, None], torch.ones(1, 1, 3), padding=1)[:, 0]
    torch.testing.assert_close(out, expected)


def test_a_range_writes_only_its_own_tiles(build_template) -> None:
    kernel = build_template("bias_relu", M=12, N=33, T=2)
    x, b, out = torch.randn(12, 33), torch.randn(33), torch.full((12, 33), torch.nan)
    kernel.run_tiles(1, 3, x, b, out)
    assert out[2:6].isfinite().all()
    assert out[:2].isnan().all()
    assert out[6:].isnan().all()


def test_nan_and_infinity_pass_through(build_template) -> None:
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0, 1e-42])
    x = special.repeat(4, 8)
    kernel = build_template("bias_gelu", M=4, N=48, T=4)
    result = kernel(x, torch.zeros(48), torch.empty(4, 48))
    expected = F.gelu(x.double()).float()
    torch.testing.assert_close(result, expected, equal_nan=True)
