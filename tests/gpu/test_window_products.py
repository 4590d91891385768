"""Convolutions of halves on windows are products, one for each point of a window."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from gpu_interpreter import launch
from gpu_memory import RaceError
from test_matrix_instructions import (
    SHAPES,
    binary_of,
    emulate,
    emulated_gpu,
    objects_of,
)
from test_matrix_loads import NO_SPILLS, said_of
from test_pointwise_convolutions import Case, check_halves, imported, kernels
from torch import Tensor

from magweld.bindings import gpu, ir
from magweld.codegen.device_tools import find_ptxas
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import block_steps

INSTRUCTIONS = {"mma": "llvm.nvvm.mma", "mfma": "llvm.amdgcn.mfma"}
# relu of CHANNELS channels to ROWS, 3 x 3 windows on HIGH x WIDE pixels, two tiles.
KERNEL = """
#id = affine_map<(n, f, y, x) -> (n, f, y, x)>
!image = tensor<1xCHANNELSxTALLxBROADxf16>
!weights = tensor<ROWSxCHANNELSx3x3xf16>
!result = tensor<1xROWSxBOTHxWIDExf16>
!tile = tensor<1xROWSxHIGHxWIDExf16>
!sums = tensor<1xROWSxHIGHxWIDExf32>
!part = tensor<1xCHANNELSxREACHxBROADxf16>
func.func @windows(%x: !image, %w: !weights, %out: !result) -> !result
    attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) = (0) to (BOTH) step (HIGH) shared_outs(%o = %out) -> (!result) {
    %t = tensor.extract_slice %x[0, 0, %i, 0] [1, CHANNELS, REACH, BROAD] [1, 1, 1, 1]
        : !image to !part
    %e = tensor.empty() : !sums
    %f = linalg.fill ins(%zero : f32) outs(%e : !sums) -> !sums
    %p = linalg.conv_2d_nchw_fchw
        {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
        ins(%t, %w : !part, !weights) outs(%f : !sums) -> !sums
    %d = tensor.extract_slice %o[0, 0, %i, 0] [1, ROWS, HIGH, WIDE] [1, 1, 1, 1]
        : !result to !tile
    %y = linalg.generic {indexing_maps = [#id, #id],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%p : !sums) outs(%d : !tile) {
    ^bb0(%a: f32, %old: f16):
      %m = arith.maximumf %a, %zero : f32
      %h = arith.truncf %m : f32 to f16
      linalg.yield %h : f16
    } -> !tile
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[0, 0, %i, 0]
          [1, ROWS, HIGH, WIDE] [1, 1, 1, 1] : !tile into !result
    }
  }
  return %r : !result
}
"""


@dataclass(frozen=True)
class Windows:
    """Sizes of the kernel."""

    channels: int = 32
    rows: int = 16
    high: int = 2
    wide: int = 8

    def text(self) -> str:
        """Return the kernel in tiled form."""
        numbers = {
            "CHANNELS": self.channels,
            "ROWS": self.rows,
            "HIGH": self.high,
            "WIDE": self.wide,
            "BOTH": 2 * self.high,
            "TALL": 2 * self.high + 2,
            "REACH": self.high + 2,
            "BROAD": self.wide + 2,
        }
        text = KERNEL
        for name, number in numbers.items():
            text = text.replace(name, str(number))
        return text

    def inputs(self) -> list[Tensor]:
        """Return the image and the weights."""
        generator = torch.Generator().manual_seed(4)
        shapes = (
            (1, self.channels, 2 * self.high + 2, self.wide + 2),
            (self.rows, self.channels, 3, 3),
        )
        return [torch.randn(shape, generator=generator).half() for shape in shapes]

    def result(self) -> Tensor:
        """Return an empty result."""
        shape = (1, self.rows, 2 * self.high, self.wide)
        return torch.full(shape, torch.nan, dtype=torch.float16)

    def check(self, result: Tensor) -> None:
        """Compare with double precision."""
        x, w = (tensor.double() for tensor in self.inputs())
        expected = F.conv2d(x, w).relu()
        torch.testing.assert_close(result.double(), expected, rtol=1e-3, atol=1e-2)


WINDOWS = Windows()


def bordered(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv2d(x, w, b, padding=1).relu()


def residual(x: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """Windows on what windows give, and the image added."""
    return (F.conv2d(F.conv2d(x, v, padding=1).relu(), w, padding=1) + x).relu()


def strided(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, stride=2, padding=1)


def dilated(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, stride=(1, 3), padding=2, dilation=2)


def single(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w).sigmoid()


def open_(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w).tanh()


# Beside the first ones with `--whole`; the last have no matrix instructions.
CASES = [
    Case(bordered, ((1, 32, 14, 14), (16, 32, 3, 3), (16,)), True),
    Case(strided, ((1, 16, 14, 14), (16, 16, 3, 3)), True),
    Case(bordered, ((1, 16, 7, 7), (32, 16, 3, 3), (32,)), True),
    Case(single, ((1, 32, 7, 7), (16, 32, 1, 1)), True),
    Case(residual, ((1, 16, 6, 6), (16, 16, 3, 3), (16, 16, 3, 3)), True),
    Case(dilated, ((1, 16, 9, 11), (16, 16, 3, 3)), True),
    Case(open_, ((1, 16, 5, 9), (16, 16, 1, 4)), True),
    Case(bordered, ((1, 24, 7, 7), (16, 24, 3, 3), (16,))),
    Case(bordered, ((1, 16, 7, 7), (24, 16, 3, 3), (24,))),
]
SHORT = 2


@pytest.mark.sample(10)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: str(CASES[i]))
def test_windows_are_products(
    number: int, dtype: torch.dtype, whole: bool, one_unit: str
) -> None:
    if not whole and (number >= SHORT or dtype != torch.bfloat16):
        pytest.skip("one of those of `--whole`")
    check_halves(CASES[number], dtype, one_unit)


def test_f32_keeps_its_precision(one_unit: str) -> None:
    case = CASES[0]
    graph = imported(case, case.tensors(torch.float32))
    assert "llvm.nvvm.mma" not in kernels(graph, one_unit)


def lowered(family: str) -> ir.Module:
    module = ir.Module.parse(WINDOWS.text())
    run_pipeline(Pipeline(block_steps(SHAPES[family])), module)
    return module


def interpreted(module: ir.Module) -> Tensor:
    out = WINDOWS.result().view(torch.int16).numpy()
    inputs = (t.view(torch.int16).numpy().copy() for t in WINDOWS.inputs())
    launch(module, [*inputs, out])
    return torch.from_numpy(out).view(torch.float16)


@pytest.mark.parametrize("family", INSTRUCTIONS)
def test_sums_stay_in_registers_until_all_is_added(family: str, context: None) -> None:
    module = lowered(family)
    text = str(module)
    assert INSTRUCTIONS[family] in text
    assert "#gpu.address_space<private>" in text
    # Rows of the result are written in pieces of 16 bytes.
    assert "vector<8xf16>" in text
    WINDOWS.check(interpreted(module))


@pytest.mark.parametrize("family", INSTRUCTIONS)
def test_without_any_one_barrier_threads_race(family: str, context: None) -> None:
    count = len(operations_of(lowered(family).operation, gpu.BarrierOp))
    # In front of what sorts, of what multiplies, of the next step, and of the sums.
    assert count >= 4
    for removed in range(count):
        module = lowered(family)
        operations_of(module.operation, gpu.BarrierOp)[removed].erase()
        with pytest.raises(RaceError):
            interpreted(module)


@pytest.mark.skipif(not find_ptxas(), reason="no ptxas")
@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a"])
def test_large_tiles_have_their_sums_in_registers(
    target: str, context: None, tmp_path: Path
) -> None:
    binary = binary_of(Windows(64, 64, 7, 14).text(), target)
    (assembly,) = objects_of(binary, "Assembly")
    # Of each point 4 x 14 fragments, which four subgroups have registers for.
    assert assembly.count(b"mma.sync") == 14
    assert b"ldmatrix" in assembly
    assert NO_SPILLS in said_of(assembly, target, tmp_path)


@pytest.mark.skipif(bool(emulated_gpu.missing()), reason=emulated_gpu.missing())
@pytest.mark.parametrize("target", ["rocdl:gfx90a", "rocdl:gfx942"])
def test_machine_code_gives_what_torch_gives(target: str, context: None) -> None:
    out = WINDOWS.result()
    emulate(binary_of(WINDOWS.text(), target), [*WINDOWS.inputs(), out])
    WINDOWS.check(out)
