"""Conversions of f16 and bf16 in kernels are torch's, on registers of either width."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.codegen.host import HostTarget
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.pipelines.cpu import cpu_steps

WIDENING = """
#id = affine_map<(d0) -> (d0)>
func.func @kernel_0(%x: tensor<{n}x{half}>, %out0: tensor<{n}xf32>) -> tensor<{n}xf32> attributes {{tile_graph.kernel}} {{
  %y = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}} ins(%x : tensor<{n}x{half}>) outs(%out0 : tensor<{n}xf32>) {{
  ^bb0(%p: {half}, %u: f32):
    %0 = arith.extf %p : {half} to f32
    linalg.yield %0 : f32
  }} -> tensor<{n}xf32>
  return %y : tensor<{n}xf32>
}}
"""  # noqa: E501
ROUNDING = """
#id = affine_map<(d0) -> (d0)>
func.func @kernel_0(%x: tensor<{n}xf32>, %out0: tensor<{n}x{half}>) -> tensor<{n}x{half}> attributes {{tile_graph.kernel}} {{
  %y = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}} ins(%x : tensor<{n}xf32>) outs(%out0 : tensor<{n}x{half}>) {{
  ^bb0(%p: f32, %u: {half}):
    %0 = arith.truncf %p : f32 to {half}
    linalg.yield %0 : {half}
  }} -> tensor<{n}x{half}>
  return %y : tensor<{n}x{half}>
}}
"""  # noqa: E501
# Between its neighbours a sum is rounded, although both conversions cancel as types.
ROUNDING_BETWEEN = """
#id = affine_map<(d0) -> (d0)>
func.func @kernel_0(%x: tensor<{n}xf32>, %out0: tensor<{n}xf32>) -> tensor<{n}xf32> attributes {{tile_graph.kernel}} {{
  %y = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}} ins(%x : tensor<{n}xf32>) outs(%out0 : tensor<{n}xf32>) {{
  ^bb0(%p: f32, %u: f32):
    %0 = arith.mulf %p, %p : f32
    %1 = arith.truncf %0 : f32 to {half}
    %2 = arith.extf %1 : {half} to f32
    %3 = arith.addf %2, %p : f32
    linalg.yield %3 : f32
  }} -> tensor<{n}xf32>
  return %y : tensor<{n}xf32>
}}
"""  # noqa: E501
# What is rounded comes from halves alone; the greater of two halves is one of them.
CHAIN = """
#id = affine_map<(d0) -> (d0)>
func.func @kernel_0(%x: tensor<{n}x{half}>, %y: tensor<{n}x{half}>, %out0: tensor<{n}x{half}>) -> tensor<{n}x{half}> attributes {{tile_graph.kernel}} {{
  %zero = arith.constant 0.0 : f32
  %z = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}} ins(%x, %y : tensor<{n}x{half}>, tensor<{n}x{half}>) outs(%out0 : tensor<{n}x{half}>) {{
  ^bb0(%p: {half}, %q: {half}, %u: {half}):
    %0 = arith.extf %p : {half} to f32
    %1 = arith.extf %q : {half} to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.truncf %2 : f32 to {half}
    %4 = arith.extf %3 : {half} to f32
    %5 = arith.maximumf %4, %zero : f32
    %6 = arith.truncf %5 : f32 to {half}
    %7 = arith.extf %6 : {half} to f32
    %8 = arith.subf %7, %1 : f32
    %9 = arith.truncf %8 : f32 to {half}
    linalg.yield %9 : {half}
  }} -> tensor<{n}x{half}>
  return %z : tensor<{n}x{half}>
}}
"""  # noqa: E501
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
UNITS = {
    "avx2": VectorUnit(256, 16),
    "avx512": VectorUnit(512, 32),
    "pairs": VectorUnit(512, 32, pairs=True),
}

Build = Callable[..., Any]


def _needs(unit: VectorUnit) -> pytest.MarkDecorator:
    absent = unit.pairs and not HostTarget.detect().multiplies_pairs
    return pytest.mark.skipif(absent, reason="the CPU multiplies no pairs")


pytestmark = [
    pytest.mark.parametrize("half", TYPES),
    pytest.mark.parametrize(
        "unit",
        [pytest.param(unit, marks=_needs(unit)) for unit in UNITS.values()],
        ids=UNITS,
    ),
]


def same_bits(mine: Tensor, theirs: Tensor) -> bool:
    """Tell whether two tensors are equal to the bit, where one is nan the other is."""
    integers = {2: torch.int16, 4: torch.int32}[mine.element_size()]
    nan = theirs.isnan()
    bits = mine.view(integers) == theirs.view(integers)
    return bool((bits | nan).all()) and bool((mine.isnan() == nan).all())


def singles() -> Tensor:
    """Return numbers between all pairs of neighbours of both types, and beyond."""
    bits = torch.arange(-(2**31), 2**31, 2**12, dtype=torch.int64)
    parts = [bits, bits + 1, bits - 1]  # halfway, and on either side of it
    every = torch.cat(parts).clamp(-(2**31), 2**31 - 1).to(torch.int32)
    return every.view(torch.float32)


def test_every_number_is_widened(build: Build, half: str, unit: VectorUnit) -> None:
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    # What fills no vector is converted one by one.
    x = torch.cat([bits, bits[:13]]).view(TYPES[half])
    kernel = build(WIDENING.format(n=len(x), half=half), cpu_steps(unit))
    assert same_bits(kernel(x, torch.zeros(len(x))), x.float())


def test_numbers_are_rounded(build: Build, half: str, unit: VectorUnit) -> None:
    x = singles()[:-3]
    kernel = build(ROUNDING.format(n=len(x), half=half), cpu_steps(unit))
    assert same_bits(
        kernel(x, torch.zeros(len(x), dtype=TYPES[half])), x.to(TYPES[half])
    )


def test_roundings_are_kept(build: Build, half: str, unit: VectorUnit) -> None:
    x = torch.randn(1003, generator=torch.Generator().manual_seed(0))
    kernel = build(ROUNDING_BETWEEN.format(n=len(x), half=half), cpu_steps(unit))
    expected = (x * x).to(TYPES[half]).float() + x
    assert same_bits(kernel(x, torch.zeros(len(x))), expected)


def test_vectors_are_moved_whole(build: Build, half: str, unit: VectorUnit) -> None:
    kernel = build(ROUNDING.format(n=1024, half=half), cpu_steps(unit))
    lanes = unit.bits // 32
    element = {"f16": "f16", "bf16": "i16"}[half]
    assert re.search(rf"llvm.store .+ : vector<{lanes}x{element}>", kernel.lowered)
    assert "xbf16" not in kernel.lowered
    assert "llvm.call @" not in kernel.lowered


def test_roundings_between_halves(build: Build, half: str, unit: VectorUnit) -> None:
    """Every half, multiplied by itself and by others: subnormal products as well."""
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    x = bits.view(TYPES[half])
    kernel = build(CHAIN.format(n=len(x), half=half), cpu_steps(unit))
    for y in (x, x.flip(0), bits[torch.randperm(len(bits))].view(TYPES[half])):
        product = x * y
        kept = product.isnan() | (product > 0)
        expected = torch.where(kept, product, 0.0) - y
        assert same_bits(kernel(x, y, torch.zeros_like(x)), expected)
