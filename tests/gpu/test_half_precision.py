"""Kernels on f16 and bf16: operands are extended, results rounded, on every target."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from string import Template

import numpy as np
import pytest
import torch
from conftest import KERNELS, SMALL_BLOCK
from gpu_interpreter import launch
from torch import Tensor

from magweld.bindings import gpu, ir
from magweld.device_kernels import compile_kernel
from magweld.passes.gpu.serialize_to_binary import LAUNCH
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import block_steps
from magweld.runtime.gpu.driver import Geometry
from magweld.targets import parse_target

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))
emulated_gpu = importlib.import_module("emulated_gpu")

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
TARGETS = ("nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx90a", "rocdl:gfx942")
SHAPES = ((32, 64), (64, 32), (32,))


def parsed(element: str) -> ir.Module:
    text = Template((KERNELS / "half_rows.mlir").read_text(encoding="utf-8"))
    return ir.Module.parse(text.substitute(E=element))


def tensors(element: str) -> list[Tensor]:
    generator = torch.Generator().manual_seed(5)
    made = [torch.randn(shape, generator=generator) / 4 for shape in SHAPES]
    return [tensor.to(TYPES[element]) for tensor in made]


def check(result: Tensor, inputs: list[Tensor]) -> None:
    """Compare with the operators one by one, each of which rounds as torch does."""
    a, b, bias = inputs
    product = (a.float() @ b.float()).to(a.dtype)
    y = product + bias
    expected = (y.float() - y.float().amax(1, keepdim=True)).exp().to(a.dtype)
    # Sums in another order may round to a neighbour, which the exponential keeps.
    eps = torch.finfo(a.dtype).eps
    torch.testing.assert_close(result, expected, rtol=4 * eps, atol=eps)
    assert (result == expected).float().mean() > 0.9


def binary_of(element: str, target: str) -> gpu.BinaryOp:
    module = parsed(element)  # kept: its operations go with it
    (function,) = kernels_of(module.operation)
    compiled = compile_kernel(function, parse_target(target))
    (binary,) = operations_of(compiled.operation, gpu.BinaryOp)
    return binary


@pytest.mark.parametrize("element", TYPES)
def test_kernel_rounds_where_torch_does(element: str, context: None) -> None:
    inputs = tensors(element)
    module = parsed(element)
    run_pipeline(Pipeline(block_steps(SMALL_BLOCK)), module)
    bits = [t.view(torch.int16).numpy().copy() for t in inputs]
    out = np.full((32, 32), -1, np.int16)
    launch(module, [*bits, out])
    check(torch.from_numpy(out).view(TYPES[element]), inputs)


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_kernel_compiles(element: str, target: str, context: None) -> None:
    assert list(binary_of(element, target).objects)


@pytest.mark.sample(1)
@pytest.mark.skipif(bool(emulated_gpu.missing()), reason=emulated_gpu.missing())
@pytest.mark.parametrize("element", TYPES)
def test_machine_code_rounds_where_torch_does(element: str, context: None) -> None:
    binary = binary_of(element, "rocdl:gfx942")
    entries = {e.name: e.attr for e in ir.DictAttr(binary.operation.attributes[LAUNCH])}
    images = [gpu.ObjectAttr(one) for one in binary.objects]
    assembly = int(gpu.CompilationTarget.Assembly)
    (code,) = [bytes(o.object) for o in images if int(o.format) != assembly]
    inputs = tensors(element)
    out = torch.full((32, 32), torch.nan, dtype=TYPES[element])
    values = [*inputs, out]
    driver = emulated_gpu.EmulatedDriver()
    driver.launch(
        driver.function(driver.load(code), entries["symbol"].value, 0),
        Geometry(
            tuple(entries["grid"]),
            tuple(entries["block"]),
            entries["dynamic_shared_bytes"].value,
        ),
        0,
        [values[number].data_ptr() for number in entries["arguments"]],
    )
    check(out, inputs)
