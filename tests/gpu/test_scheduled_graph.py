"""The scheduler's own kernels for a GPU compute what the graph says."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_interpreter import run_host

from magweld.bindings import gpu, ir
from magweld.compiler import lower_to_tiles
from magweld.device_compiler import device_options
from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import BlockShape, block_steps
from magweld.passes.pipelines.middle import (
    CpuPipeline,
    GpuPipeline,
    form_steps,
    graph_steps,
)
from magweld.passes.plan.lower_subgraphs import LowerSubgraphs
from magweld.targets.target import parse_target

# softmax(relu(a b + bias)) over rows.
GRAPH = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%a: tensor<16x24xf32>, %b: tensor<24x32xf32>, %bias: tensor<32xf32>)
    -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %mm = linalg.matmul ins(%a, %b : tensor<16x24xf32>, tensor<24x32xf32>)
    outs(%f : tensor<16x32xf32>) -> tensor<16x32xf32>
  %relu = linalg.generic {indexing_maps = [#id, #column, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%mm, %bias : tensor<16x32xf32>, tensor<32xf32>)
    outs(%e : tensor<16x32xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.maximumf %0, %zero : f32
    linalg.yield %1 : f32
  } -> tensor<16x32xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<16xf32>) -> tensor<16xf32>
  %max = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%relu : tensor<16x32xf32>) outs(%low : tensor<16xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.maximumf %p, %acc : f32
    linalg.yield %0 : f32
  } -> tensor<16xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%relu, %max : tensor<16x32xf32>, tensor<16xf32>)
    outs(%e : tensor<16x32xf32>) {
  ^bb0(%p: f32, %m: f32, %u: f32):
    %0 = arith.subf %p, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16x32xf32>
  %none = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16xf32>) -> tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%exp : tensor<16x32xf32>) outs(%none : tensor<16xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %0 = arith.addf %p, %acc : f32
    linalg.yield %0 : f32
  } -> tensor<16xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%exp, %sum : tensor<16x32xf32>, tensor<16xf32>)
    outs(%e : tensor<16x32xf32>) {
  ^bb0(%p: f32, %t: f32, %u: f32):
    %0 = arith.divf %p, %t : f32
    linalg.yield %0 : f32
  } -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}
"""


@pytest.mark.parametrize("name", ["nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx942"])
def test_scheduled_graph_runs_as_kernels(name: str, context) -> None:
    target = parse_target(name)
    graph = graph_steps(target.device.name, "never")
    phases = (Phase.TILE_GRAPH, Phase.SCHEDULED, Phase.PLANNED)
    tiled = (*(step for phase in phases for step in graph[phase]), LowerSubgraphs())
    module = ir.Module.parse(GRAPH)
    run_pipeline(Pipeline((*tiled, *block_steps(BlockShape.of(target, 64)))), module)
    assert operations_of(module.operation, gpu.LaunchFuncOp)
    generator = np.random.default_rng(3)
    a, b, bias = (
        generator.standard_normal(shape).astype(np.float32)
        for shape in ((16, 24), (24, 32), (32,))
    )
    result = run_host(module, [a, b, bias])
    relu = np.maximum(a.astype(np.float64) @ b + bias, 0)
    power = np.exp(relu - relu.max(1, keepdims=True))
    expected = power / power.sum(1, keepdims=True)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["nvvm:sm_80@v100", "rocdl:gfx942"])
def test_the_named_pipeline_schedules_as_programs_are(name: str, context) -> None:
    target = parse_target(name)
    programs, named = (ir.Module.parse(GRAPH) for _ in range(2))
    lower_to_tiles(
        programs,
        device_options(target),
        Phase.SCHEDULED,
        Phase.LINALG,
        target=target,
    )
    steps = GpuPipeline(target=name, compile_to=Phase.SCHEDULED).steps()
    run_pipeline(Pipeline(steps), named)
    assert str(programs) == str(named)


def test_threads_that_share_tiles_and_vectors_have_steps_of_their_own() -> None:
    shared, own = (
        {step.name for step in form_steps(shares_tiles=one) if isinstance(step, Pass)}
        for one in (True, False)
    )
    assert shared - own
    assert own - shared
    for pipeline, taken in ((GpuPipeline(), shared), (CpuPipeline(), own)):
        names = {step.name for step in pipeline.steps() if isinstance(step, Pass)}
        assert names & (shared | own) == taken
