"""What is planned is what is lowered; clean-up between steps decides nothing.

The subgraphs of the benchmarks, from torch to buffers with register tiles.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.bindings import ir, linalg, memref
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.dialects.tile_graph import REDUCTION_BLOCK, is_kernel
from magweld.importer.importer import import_graph
from magweld.passes.cpu.pipeline import cpu_steps
from magweld.passes.cpu.register_tile import ATTRIBUTE
from magweld.passes.cpu.sweeps import SWEEP
from magweld.passes.execution import run_pipeline
from magweld.passes.ir_utils import operations_of
from magweld.passes.phases import Phase
from magweld.passes.pipeline import Pipeline, Step, Upstream

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


def tiled(case: Case, until: Phase = Phase.TILED) -> str:
    """Return a subgraph at a phase, its kernels alone once there are any."""
    inputs = case.arguments()
    graph = make_fx(case.function, tracing_mode="fake")(*inputs)
    text = import_graph(graph, inputs, look_ups=True).text
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        lower_to_tiles(module, CompileOptions(), until)
        if until is Phase.TILED:
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
    plan = tiled(case, Phase.PLANNED)
    planned = re.findall(r"reduction_block = (\d+) : i64", plan)
    assert planned
    kernel = tiled(case)
    assert re.findall(rf"{REDUCTION_BLOCK} = (\d+) : i64", kernel) == planned
    steps = list(cpu_steps())
    names = [getattr(step, "name", "") for step in steps]
    until = names.index("block-reductions") + 1
    for block in (int(planned[0]), 64):
        text = kernel.replace(
            f"{REDUCTION_BLOCK} = {planned[0]} ", f"{REDUCTION_BLOCK} = {block} "
        )
        shapes = decided(steps[:until], text)["shapes"]
        assert any(f", {block}]" in shape for shape in shapes), (block, shapes)
