"""Expanded math functions against double precision, in the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from gpu_interpreter import launch

from magweld.bindings import ir
from magweld.passes.execution import run_pipeline
from magweld.passes.gpu.expand_gpu_math import ExpandGpuMath
from magweld.passes.pipeline import Pipeline

COUNT = 4096
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38]
TEXT = """
module attributes {{gpu.container_module}} {{
  func.func @host(%x: memref<{n}xf32>) {{
    %c1 = arith.constant 1 : index
    %n = arith.constant {n} : index
    gpu.launch_func @device::@kernel blocks in (%c1, %c1, %c1)
      threads in (%n, %c1, %c1) args(%x : memref<{n}xf32>)
    return
  }}
  gpu.module @device {{
    gpu.func @kernel(%x: memref<{n}xf32>) kernel {{
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<{n}xf32>
      %y = math.{function} %v : f32
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
    ("log", torch.log, 1),
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
    module = ir.Module.parse(TEXT.format(n=COUNT, function=name))
    run_pipeline(Pipeline((ExpandGpuMath(),)), module)
    result = x.copy()
    launch(module, [result])
    with np.errstate(over="ignore"):
        rounded = expected.astype(np.float32)
    exact = np.isfinite(rounded)
    np.testing.assert_array_equal(result[~exact], rounded[~exact])
    spacing = np.spacing(np.abs(rounded[exact]))
    assert (np.abs(result[exact] - expected[exact]) / spacing).max() <= ulps
