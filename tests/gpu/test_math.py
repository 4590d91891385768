"""Expanded math functions against double precision, in the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from gpu_interpreter import launch

from magweld.bindings import ir
from magweld.passes.gpu.expand_gpu_math import ExpandGpuMath
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline

COUNT = 4096
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38]
TEXT = """
module attributes {{gpu.container_module}} {{
  func.func @host(%x: memref<{n}xf32>, %p: memref<{n}xf32>) {{
    %c1 = arith.constant 1 : index
    %n = arith.constant {n} : index
    gpu.launch_func @device::@kernel blocks in (%c1, %c1, %c1)
      threads in (%n, %c1, %c1) args(%x : memref<{n}xf32>, %p : memref<{n}xf32>)
    return
  }}
  gpu.module @device {{
    gpu.func @kernel(%x: memref<{n}xf32>, %p: memref<{n}xf32>) kernel {{
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<{n}xf32>
      %w = memref.load %p[%i] : memref<{n}xf32>
      %y = math.{function} : f32
      memref.store %y, %x[%i] : memref<{n}xf32>
      gpu.return
    }}
  }}
}}
"""
FUNCTIONS: list[tuple[str, Callable[[torch.Tensor], torch.Tensor], float]] = [
    ("exp", torch.exp, 2),
    ("exp2", torch.exp2, 1),
    ("erf", torch.erf, 3),
    ("cos", torch.cos, 1.5),
    ("log", torch.log, 1),
    ("sin", torch.sin, 1.5),
    ("tanh", torch.tanh, 2),
    ("rsqrt", torch.rsqrt, 2),
    ("sqrt", torch.sqrt, 0.5),
]


@pytest.mark.parametrize(
    ("name", "reference", "ulps"), FUNCTIONS, ids=[f[0] for f in FUNCTIONS]
)
def test_function_is_exact_to_few_units(name, reference, ulps, context) -> None:
    generator = np.random.default_rng(7)
    scale = 10.0 ** generator.uniform(-6, 2.2, COUNT)
    values = generator.standard_normal(COUNT) * scale
    values[: len(SPECIAL)] = SPECIAL
    x = values.astype(np.float32)
    expected = reference(torch.from_numpy(x.astype(np.float64))).numpy()
    _compare(_computed(f"{name} %v", x, x), expected, ulps)


def test_power_is_exact_to_one_unit(context) -> None:
    generator = np.random.default_rng(8)
    special = [*SPECIAL, 1.0, -1.0, 2.0, -3.0, 0.5, -2.5, 16777217.0]
    pairs = [(a, b) for a in special for b in special]
    base = np.exp2(generator.uniform(-60, 60, COUNT)).astype(np.float32)
    # Results of all sizes, whole exponents of negative numbers among them.
    power = generator.uniform(-150, 150, COUNT) / np.log2(base)
    power[: COUNT // 4] = np.round(power[: COUNT // 4])
    base[: COUNT // 4 : 2] *= -1
    base[-len(pairs) :], power[-len(pairs) :] = np.transpose(pairs)
    x, p = base, power.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), p.astype(np.float64))
    _compare(_computed("powf %v, %w", x, p), expected, 1)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0, 4.0])
def test_constant_power_is_exact_to_few_units(power: float, context) -> None:
    text = TEXT.replace("= math.{function} : f32", "= math.powf %v, %c : f32").replace(
        "%i = gpu.thread_id x",
        f"%c = arith.constant {power} : f32\n%i = gpu.thread_id x",
    )
    x = np.random.default_rng(9).standard_normal(COUNT).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), power)
    _compare(_run(text.format(n=COUNT), x, x), expected, 2.5)


@pytest.mark.parametrize("form", ["erf", "gelu"])
def test_erf_of_which_halves_are_kept_is_exact_to_them(form: str, context) -> None:
    kept = """%g = math.erf %v : f32
      {gelu}
      %h = arith.truncf %{kept} : f32 to f16
      %y = arith.extf %h : f16 to f32"""
    factor = """%one = arith.constant 1.0 : f32
      %s = arith.addf %g, %one : f32
      %k = arith.mulf %s, %v : f32"""
    made = {"erf": ("", "g"), "gelu": (factor, "k")}[form]
    text = TEXT.replace(
        "%y = math.{function} : f32", kept.format(gelu=made[0], kept=made[1])
    )
    x = np.random.default_rng(10).standard_normal(COUNT).astype(np.float32)
    x *= np.logspace(-4, 0.4, COUNT, dtype=np.float32)
    x[:4] = [0.0, -0.0, np.inf, np.nan]
    wide = torch.from_numpy(x.astype(np.float64))
    exact = torch.erf(wide) if form == "erf" else torch.erfc(-wide) * wide
    result = _run(text.format(n=COUNT), x, x).astype(np.float64)
    with np.errstate(all="ignore"):
        halves = np.spacing(np.abs(exact.numpy()).astype(np.float16))
    # Of 1 + erf(x) the rounding of erf to f32 is left, as in torch.
    lost = 2.0**-23 * np.abs(x) if form == "gelu" else np.zeros(COUNT)
    finite = np.isfinite(exact.numpy())
    error = np.abs(result[finite] - exact.numpy()[finite])
    assert (error <= 0.55 * halves.astype(np.float64)[finite] + lost[finite]).all()
    np.testing.assert_array_equal(result[~finite], exact.numpy()[~finite])


def _computed(function: str, x: np.ndarray, p: np.ndarray) -> np.ndarray:
    return _run(TEXT.format(n=COUNT, function=function), x, p)


def _run(text: str, x: np.ndarray, p: np.ndarray) -> np.ndarray:
    module = ir.Module.parse(text)
    run_pipeline(Pipeline((ExpandGpuMath(),)), module)
    result = x.copy()
    launch(module, [result, p.copy()])
    return result


def _compare(result: np.ndarray, expected: np.ndarray, ulps: float) -> None:
    with np.errstate(over="ignore"):
        rounded = expected.astype(np.float32)
    exact = np.isfinite(rounded)
    np.testing.assert_array_equal(result[~exact], rounded[~exact])
    spacing = np.spacing(np.abs(rounded[exact]))
    assert (np.abs(result[exact] - expected[exact]) / spacing).max() <= ulps
