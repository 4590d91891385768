"""Products of bf16 are the sums of their elements' products, by pairs or one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from magweld.codegen.host import HostTarget
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.pipelines.cpu import cpu_steps

KERNEL = """
#a = affine_map<(m, n, k) -> ({left})>
#b = affine_map<(m, n, k) -> ({right})>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @kernel_0(%x: tensor<{x}x{half}>, %y: tensor<{y}x{half}>, %out0: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> attributes {{tile_graph.kernel}} {{
  %zero = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%out0 : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %z = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, %y : tensor<{x}x{half}>, tensor<{y}x{half}>) outs(%fill : tensor<{m}x{n}xf32>) {{
  ^bb0(%p: {half}, %q: {half}, %s: f32):
    %0 = arith.extf %p : {half} to f32
    %1 = arith.extf %q : {half} to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %s, %2 : f32
    linalg.yield %3 : f32
  }} -> tensor<{m}x{n}xf32>
  return %z : tensor<{m}x{n}xf32>
}}
"""  # noqa: E501
INSTRUCTION = "vdpbf16ps"
PAIRS, APART, NARROW = (
    VectorUnit(512, 32, pairs=True),
    VectorUnit(512, 32),
    VectorUnit(256, 16),
)
UNITS = (PAIRS, APART, NARROW)
LAYOUTS = (("mk", "nk"), ("km", "nk"), ("mk", "kn"))
SIZES = ((48, 64, 64), (33, 101, 70), (7, 19, 2), (50, 33, 51), (5, 130, 768))
Build = Callable[..., Any]
has_pairs = pytest.mark.skipif(
    not HostTarget.detect().multiplies_pairs, reason="the CPU multiplies no pairs"
)
units = pytest.mark.parametrize(
    "unit",
    [pytest.param(PAIRS, marks=has_pairs, id="pairs"), APART, NARROW],
    ids=["pairs", "avx512", "avx2"],
)


def text_of(m: int, n: int, k: int, left: str, right: str, half: str = "bf16") -> str:
    """Return a product whose operands are stored in an order of their loops."""
    sizes = {"m": m, "n": n, "k": k}
    shapes = ("x".join(str(sizes[d]) for d in order) for order in (left, right))
    x, y = shapes
    loops = (", ".join(order) for order in (left, right))
    return KERNEL.format(
        left=next(loops), right=next(loops), x=x, y=y, m=m, n=n, half=half
    )


def operands(m: int, n: int, k: int, left: str, right: str) -> tuple[Any, Any]:
    """Return operands of f32 that bf16 holds, in the order of rows, then columns."""
    sizes = {"m": m, "n": n, "k": k}
    generator = torch.Generator().manual_seed(m * n + k)
    x, y = (
        torch.randn([sizes[d] for d in order], generator=generator).bfloat16()
        for order in (left, right)
    )
    return x, y


@pytest.mark.sample(32)
@units
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("right", ["kn", "nk"])
@pytest.mark.parametrize("left", ["mk", "km"])
def test_products_of_any_layout(
    build: Build,
    unit: VectorUnit,
    size: tuple[int, int, int],
    left: str,
    right: str,
    whole: bool,
) -> None:
    # Half of them have each two of the four together.
    number = UNITS.index(unit) + SIZES.index(size) + (left == "km") + (right == "nk")
    if number % 2 and not whole:
        pytest.skip("a case of `--whole`")
    m, n, k = size
    kernel = build(text_of(m, n, k, left, right), cpu_steps(unit))
    x, y = operands(m, n, k, left, right)
    rows = (x if left == "mk" else x.t()).double()
    columns = (y if right == "kn" else y.t()).double()
    expected = rows @ columns
    largest = (rows.abs() @ columns.abs()).max()
    mine = kernel(x, y, torch.full((m, n), torch.nan))
    assert (mine.double() - expected).abs().max() <= 2.0**-22 * largest * k**0.5
    if not unit.pairs:
        assert INSTRUCTION not in kernel.lowered
    elif m > 32:
        assert INSTRUCTION in kernel.lowered


@has_pairs
@pytest.mark.parametrize("k", [64, 65])
def test_infinities_stay_in_their_row(build: Build, k: int) -> None:
    m, n = 48, 67
    kernel = build(text_of(m, n, k, "mk", "nk"), cpu_steps(PAIRS))
    assert INSTRUCTION in kernel.lowered
    x, y = operands(m, n, k, "mk", "nk")
    x[3, 5], x[7, 0], x[9, k - 1] = torch.inf, torch.nan, torch.finfo(x.dtype).max
    y[4, 5] = 0.0
    mine = kernel(x, y, torch.zeros(m, n))
    expected = x.float() @ y.float().t()
    assert torch.equal(mine.isnan(), expected.isnan())
    assert torch.equal(mine.isinf(), expected.isinf())


@pytest.mark.sample(24)
@units
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_products_of_f16(
    build: Build,
    unit: VectorUnit,
    size: tuple[int, int, int],
    layout: tuple[str, str],
    whole: bool,
) -> None:
    number = UNITS.index(unit) + SIZES.index(size) + LAYOUTS.index(layout)
    if number % 2 and not whole:
        pytest.skip("a case of `--whole`")
    (m, n, k), (left, right) = size, layout
    kernel = build(text_of(m, n, k, left, right, "f16"), cpu_steps(unit))
    x, y = (operand.half() for operand in operands(m, n, k, left, right))
    rows = (x if left == "mk" else x.t()).double()
    columns = (y if right == "kn" else y.t()).double()
    mine = kernel(x, y, torch.full((m, n), torch.nan))
    largest = (rows.abs() @ columns.abs()).max()
    error = (mine.double() - rows @ columns).abs().max()
    assert error <= 2.0**-22 * largest * k**0.5
    assert INSTRUCTION not in kernel.lowered
