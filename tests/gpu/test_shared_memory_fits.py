"""Every kernel of the subgraphs at full size has the shared memory that it needs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.bindings import ir, nvvm
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.importer.importer import import_graph
from magweld.passes.gpu.place_shared_memory import SHARED_BYTES
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import gpu_phase_steps
from magweld.targets import Target, parse_target

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "examples")]
CASES = {case.name: case for case in importlib.import_module("subgraph_cases").CASES}
# Of the targets the one whose blocks have the least shared memory.
TARGET = "rocdl:gfx942"


def kernels(name: str, target: Target) -> Iterator[Any]:
    """Yield the tiled kernels of a subgraph, each in a module of its own."""
    case = CASES[name]
    inputs = case.arguments()
    with torch.no_grad():
        graph = make_fx(case.function, tracing_mode="fake", pre_dispatch=True)(*inputs)
    text = import_graph(graph, inputs, device=torch.device("meta")).text
    module = ir.Module.parse(text)
    options = CompileOptions(device=target.reference, library="never")
    lower_to_tiles(module, options, target=target)
    for function in kernels_of(module.operation):
        kernel = ir.Module.create()
        with ir.InsertionPoint(kernel.body):
            function.operation.clone()
        yield kernel


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_kernels_fit(name: str) -> None:
    target = parse_target(TARGET)
    capacity = target.device.level("shared").capacity
    with make_context(), ir.Location.unknown():
        for kernel in kernels(name, target):
            run_pipeline(Pipeline(gpu_phase_steps(target)[Phase.GPU]), kernel)
            kernel = ir.Module.parse(str(kernel))  # which is what tools hand on
            (function,) = (
                op for op in kernel.body.operations if SHARED_BYTES in op.attributes
            )
            assert ir.IntegerAttr(function.attributes[SHARED_BYTES]).value <= capacity


def number(function: Any, name: str) -> int:
    return int(ir.IntegerAttr(function.attributes[name]).value)


def test_as_many_steps_are_held_as_planned_in_the_bytes_planned() -> None:
    target = parse_target("nvvm:sm_80")
    with make_context(), ir.Location.unknown():
        product, norm = kernels("linear-add-norm", target)
        (planned,) = kernels_of(product.operation)
        stages = number(planned, "tile_graph.copy_stages")
        assert stages == 4
        room = number(planned, "tile_graph.footprint")
        for kernel in (product, norm):
            run_pipeline(Pipeline(gpu_phase_steps(target)[Phase.GPU]), kernel)
        (wait,) = operations_of(product.operation, nvvm.CpAsyncWaitGroupOp)
        assert ir.IntegerAttr(wait.n).value == stages - 2
        (placed,) = (o for o in product.body.operations if SHARED_BYTES in o.attributes)
        assert number(placed, SHARED_BYTES) <= room
        assert not operations_of(norm.operation, nvvm.CpAsyncWaitGroupOp)
