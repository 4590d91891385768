"""Convolutions of single points are products on GPUs, in halves by instructions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from gpu_interpreter import launch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.bindings import ir
from magweld.compiler import lower_to_tiles
from magweld.context import make_context
from magweld.device_compiler import device_options
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.pipelines.gpu import BlockShape, block_steps
from magweld.targets import parse_target

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
NVIDIA = "nvvm:sm_80"
MATRICES = {
    "llvm.nvvm.mma": BlockShape(128, 32, 49152, "mma", has_async_copies=True),
    "llvm.amdgcn.mfma": BlockShape(256, 64, 65536, "mfma"),
}
# relu of 16 channels to 32: tiles of 4 of 8 rows of 28 pixels, 14 fragments of columns.
ROWS = """
#x = affine_map<(n, f, y, x, c) -> (n, c, y, x)>
#w = affine_map<(n, f, y, x, c) -> (f, c)>
#o = affine_map<(n, f, y, x, c) -> (n, f, y, x)>
#id = affine_map<(n, f, y, x) -> (n, f, y, x)>
!image = tensor<1x48x8x28xf16>
!result = tensor<1x32x8x28xf16>
!tile = tensor<1x32x4x28xf16>
!sums = tensor<1x32x4x28xf32>
func.func @rows(%x: !image, %w: tensor<32x48xf16>, %out: !result) -> !result
    attributes {tile_graph.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) = (0) to (8) step (4) shared_outs(%o = %out) -> (!result) {
    %t = tensor.extract_slice %x[0, 0, %i, 0] [1, 48, 4, 28] [1, 1, 1, 1]
        : !image to tensor<1x48x4x28xf16>
    %e = tensor.empty() : !sums
    %f = linalg.fill ins(%zero : f32) outs(%e : !sums) -> !sums
    %p = linalg.contract indexing_maps = [#x, #w, #o]
        ins(%t, %w : tensor<1x48x4x28xf16>, tensor<32x48xf16>)
        outs(%f : !sums) -> !sums
    %d = tensor.extract_slice %o[0, 0, %i, 0] [1, 32, 4, 28] [1, 1, 1, 1]
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
      tensor.parallel_insert_slice %y into %o[0, 0, %i, 0] [1, 32, 4, 28] [1, 1, 1, 1]
          : !tile into !result
    }
  }
  return %r : !result
}
"""


def pixels(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv2d(x, w, b).relu()


def residual(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """What is added has the dimensions of pixels."""
    return F.conv2d(x, w, b) + x.sigmoid()


def between_windows(x: Tensor, d: Tensor, w: Tensor) -> Tensor:
    """Windows in front of a product, and windows on its result."""
    y = F.conv2d(x, d, padding=1, groups=x.shape[1])
    return F.max_pool2d(F.conv2d(y, w).relu(), 2)


def row(x: Tensor, w: Tensor) -> Tensor:
    return F.conv1d(x, w).tanh()


def volume(x: Tensor, w: Tensor) -> Tensor:
    return F.conv3d(x, w)


def groups(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, groups=2)


def strided(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, stride=2)


def bordered(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, padding=1)


@dataclass(frozen=True)
class Case:
    """A convolution, shapes of its arguments, and whether tiles are whole fragments."""

    function: Callable[..., Tensor]
    shapes: tuple[tuple[int, ...], ...]
    has_fragments: bool = False

    def __str__(self) -> str:
        return f"{self.function.__name__}-{self.shapes[0]}"

    def tensors(self, dtype: torch.dtype) -> list[Tensor]:
        generator = torch.Generator().manual_seed(len(self.shapes[0]))
        made = [torch.randn(shape, generator=generator) for shape in self.shapes]
        return [tensor.to(dtype) for tensor in made]


# All of it is run for one of each, and for the others with `--whole`.
CASES = [
    Case(between_windows, ((1, 64, 8, 8), (64, 1, 3, 3), (64, 64, 1, 1)), True),
    Case(residual, ((1, 16, 4, 20), (16, 16, 1, 1), (16,)), True),
    Case(row, ((2, 16, 24), (16, 16, 1)), True),
    Case(pixels, ((1, 5, 7, 7), (3, 5, 1, 1), (3,))),
    Case(volume, ((1, 16, 2, 3, 4), (16, 16, 1, 1, 1))),
    Case(groups, ((1, 32, 4, 4), (32, 16, 1, 1))),
    Case(strided, ((1, 16, 8, 8), (16, 16, 1, 1))),
    Case(bordered, ((1, 16, 6, 6), (16, 16, 1, 1))),
]


def imported(case: Case, tensors: list[Tensor]) -> ImportedGraph:
    with torch.no_grad():
        graph = make_fx(case.function, tracing_mode="fake")(*tensors)
    return import_graph(graph, tensors, device=torch.device("meta"))


def kernels(graph: ImportedGraph, name: str) -> str:
    """Return the kernels of a graph in the gpu dialect."""
    target = parse_target(name)
    texts = []
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(graph.text)
        lower_to_tiles(module, device_options(target), target=target)
        for kernel in kernels_of(module.operation):
            alone = ir.Module.create()
            with ir.InsertionPoint(alone.body):
                kernel.operation.clone()
            run_pipeline(Pipeline(block_steps(BlockShape.of(target))), alone)
            texts.append(str(alone))
    return "".join(texts)


def check_halves(case: Case, dtype: torch.dtype, target: str) -> None:
    """Check the instructions of a case, and its result beside one of doubles."""
    tensors = case.tensors(dtype)
    graph = imported(case, tensors)
    assert ("llvm.nvvm.mma" in kernels(graph, target)) == case.has_fragments
    counts = importlib.import_module("device_counts")
    _, result = counts.counted(graph, tensors, target)
    expected = case.function(*(tensor.double() for tensor in tensors))
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(result.double(), expected, rtol=2 * eps, atol=64 * eps)


@pytest.mark.sample(8)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_of_points_are_products(
    case: Case, dtype: torch.dtype, whole: bool
) -> None:
    is_half = dtype != torch.float32
    if not whole and (case != CASES[0] or not is_half):
        pytest.skip("one of those of `--whole`")
    tensors = case.tensors(dtype)
    graph = imported(case, tensors)
    text = kernels(graph, NVIDIA)
    assert ("llvm.nvvm.mma" in text) == (is_half and case.has_fragments)
    counts = importlib.import_module("device_counts")
    _, result = counts.counted(graph, tensors, NVIDIA)
    expected = case.function(*tensors)
    # Terms are added in another order, which may round to a neighbour.
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(result, expected, rtol=4 * eps, atol=64 * eps)


@pytest.mark.parametrize("instruction", MATRICES)
def test_rows_of_pixels_are_columns_of_fragments(
    instruction: str, context: None
) -> None:
    module = ir.Module.parse(ROWS)
    run_pipeline(Pipeline(block_steps(MATRICES[instruction])), module)
    text = str(module)
    assert instruction in text
    # Neighbours are accessed together, and found without a division.
    assert "vector.store" in text
    assert "floordiv" not in text
    assert "memref.collapse_shape" not in text
    generator = torch.Generator().manual_seed(2)
    x, w = (
        torch.randn(shape, generator=generator).half()
        for shape in ((1, 48, 8, 28), (32, 48))
    )
    out = np.full((1, 32, 8, 28), -1, np.int16)
    launch(module, [*(t.view(torch.int16).numpy().copy() for t in (x, w)), out])
    result = torch.from_numpy(out).view(torch.float16)
    expected = F.conv2d(x.double(), w.double()[:, :, None, None]).relu()
    torch.testing.assert_close(result.double(), expected, rtol=1e-3, atol=1e-2)
