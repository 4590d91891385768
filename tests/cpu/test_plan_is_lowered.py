"""What is planned is what is lowered; clean-up between steps decides nothing.

The subgraphs of the benchmarks, from torch to buffers with register tiles.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.bindings import func, ir, linalg, memref
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.dialects.tile_graph import (
    LEVEL,
    OPERATORS,
    PLACE,
    REDUCTION_BLOCK,
    is_kernel,
)
from magweld.importer.importer import import_graph
from magweld.passes.cpu.generic_forms import fill_value
from magweld.passes.cpu.kernels import PLACED
from magweld.passes.cpu.register_tile import ATTRIBUTE
from magweld.passes.cpu.sweeps import SWEEP
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Pipeline, Step, Upstream
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.cpu import cpu_phase_steps, cpu_steps
from magweld.passes.plan.lower_subgraphs import LowerSubgraphs

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from subgraph_cases import CASES, Case

CLEAN_UP = Upstream("canonicalize,cse")
# Streams, windows, borders, sums that share zeros, products that are made again.
DELICATE = (
    "add-norm",
    "conv-relu-pool",
    "conformer-convolution",
    "long-attention",
    "norm-gate",
    "window-attention",
)


@cache  # several tests look at each
def planned(case: Case) -> str:
    """Return a planned subgraph."""
    inputs = case.arguments()
    graph = make_fx(case.function, tracing_mode="fake")(*inputs)
    text = import_graph(graph, inputs, look_ups=True).text
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        lower_to_tiles(module, CompileOptions(), Phase.PLANNED)
        return str(module)


@cache
def tiled(case: Case) -> str:
    """Return the tiled kernels of a subgraph."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(planned(case))
        lower_to_tiles(module, CompileOptions(), Phase.TILED, Phase.PLANNED)
        for op in list(module.body.operations):
            if not is_kernel(op):
                op.erase()
        return str(module)


def decided(steps: list[Step], text: str) -> dict[str, Any]:
    """Return what steps decide about kernels: buffers, loops of blocks, registers."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(Pipeline(tuple(steps)), module)
        root = module.operation
        generics = [op.operation for op in operations_of(root, linalg.GenericOp)]
        return {
            "buffers": sorted(
                str(op.memref.type) for op in operations_of(root, memref.AllocOp)
            ),
            "registers": sorted(
                str(op.attributes[ATTRIBUTE])
                for op in generics
                if ATTRIBUTE in op.attributes
            ),
            "together": sum(SWEEP in op.attributes for op in generics),
            "shapes": sorted(
                " ".join(str(value.type.shape) for value in op.operands)
                for op in generics
            ),
        }


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", DELICATE)
def test_clean_up_between_steps_changes_no_decision(name: str) -> None:
    (case,) = (case for case in CASES if case.name == name)
    text = tiled(case)
    steps = list(cpu_steps())
    names = [getattr(step, "name", "") for step in steps]
    steps = steps[: names.index("tile-for-registers") + 1]
    cleaned = [one for step in steps for one in (CLEAN_UP, step)]
    expected = decided(steps, text)
    assert expected["registers"]
    assert json.dumps(decided(cleaned, text)) == json.dumps(expected)


def test_blocks_of_reductions_are_those_of_the_plan() -> None:
    """The plan names them, the lowering makes loops of that step and no others."""
    (case,) = (case for case in CASES if case.name == "feed-forward")
    blocks = re.findall(r"reduction_block = (\d+) : i64", planned(case))
    assert blocks
    kernel = tiled(case)
    assert re.findall(rf"{REDUCTION_BLOCK} = (\d+) : i64", kernel) == blocks
    steps = list(cpu_steps())
    names = [getattr(step, "name", "") for step in steps]
    until = names.index("block-reductions") + 1
    for block in (int(blocks[0]), 64):
        text = kernel.replace(
            f"{REDUCTION_BLOCK} = {blocks[0]} ", f"{REDUCTION_BLOCK} = {block} "
        )
        shapes = decided(steps[:until], text)["shapes"]
        assert any(f", {block}]" in shape for shape in shapes), (block, shapes)


def nests_in(root: Any) -> int:
    """Return how many linalg operations there are that do more than fill a tile."""
    found = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        name = str(op.name)
        if name.startswith("linalg.") and name not in INNER and not is_fill(op):
            found += 1
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return found


INNER = ("linalg.yield", "linalg.index")


def is_fill(op: ir.Operation) -> bool:
    return str(op.name) == "linalg.fill" or fill_value(op.operation) is not None


@pytest.mark.sample(5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_computations_of_the_plan_are_the_loop_nests_that_run(case: Case) -> None:
    """Nothing behind the plan fuses, repeats or drops one, and clean-up neither."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(planned(case))
        computes: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if str(op.name) == "tile_graph.compute":
                computes.append(op.operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        nests = [nests_in(op) for op in computes]
        # Tiles that are put together have none.
        assert nests
        assert max(nests) == 1
        run_pipeline(Pipeline((LowerSubgraphs(),)), module)
        kernels = {
            op.attributes["sym_name"].value: op
            for op in module.body.operations
            if is_kernel(op)
        }
        calls = [
            op.attributes["callee"].value
            for function in module.body.operations
            if not is_kernel(function)
            for op in operations_of(function.operation, func.CallOp)
            if OPERATORS in op.attributes
        ]
        assert sum(nests_in(kernels[name]) for name in calls) == sum(nests)
        for op in list(module.body.operations):
            if not is_kernel(op):
                op.erase()
        before = {name: nests_in(kernel) for name, kernel in kernels.items()}
        steps = cpu_phase_steps()[Phase.BUFFERIZED]
        cleaned = [one for step in steps for one in (CLEAN_UP, step)]
        run_pipeline(Pipeline((*cleaned, CLEAN_UP)), module)
        lowered = {
            op.attributes["sym_name"].value: nests_in(op)
            for op in module.body.operations
        }
        assert lowered == before


@pytest.mark.sample(8)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_buffers_take_no_more_than_the_footprint_of_the_plan(case: Case) -> None:
    text = tiled(case)
    steps = list(cpu_steps())
    names = [getattr(step, "name", "") for step in steps]
    steps = steps[: names.index("place-allocations") + 1]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(Pipeline(tuple(steps)), module)
        for kernel in module.body.operations:
            attributes = kernel.attributes
            if "tile_graph.footprint" in attributes and PLACED in attributes:
                footprint = attributes["tile_graph.footprint"].value
                places = _places(kernel)
                assert sum(places) == attributes[PLACED].value
                assert attributes[PLACED].value <= footprint


def _places(kernel: Any) -> list[int]:
    """Bytes of the places of a kernel in its level, one behind the other."""
    makers = (memref.AllocOp, memref.AllocaOp)
    ops = [op for kind in makers for op in operations_of(kernel.operation, kind)]
    level = kernel.attributes[LEVEL].value
    found = (op.attributes[PLACE] for op in ops)
    places = sorted((p for p in found if p.level == level), key=lambda p: p.offset)
    sizes = [-(-place.bytes // place.alignment) * place.alignment for place in places]
    for number, place in enumerate(places):
        assert place.offset == sum(sizes[:number])
    return sizes
