"""Attention in halves is one kernel, whose scores lie in registers of subgroups."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from gpu_interpreter import launch
from gpu_memory import RaceError
from test_matrix_instructions import emulate as emulate_binary
from torch import Tensor, fx

from magweld.bindings import func, gpu, ir
from magweld.compiler import lower_to_tiles
from magweld.context import make_context
from magweld.device_compiler import device_options
from magweld.device_kernels import compile_kernel
from magweld.dialects.tile_graph import SUBGROUP_ROWS, tile_attribute
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.passes.analysis.summary import summarize
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import find_function, functions_of, operations_of
from magweld.passes.pipelines.gpu import BlockShape, block_steps
from magweld.passes.pipelines.middle import graph_steps, steps_between
from magweld.targets.target import Target, parse_target

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
emulated_gpu = importlib.import_module("emulated_gpu")

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
Attention = Callable[..., Tensor]
Run = Callable[[func.FuncOp, Target, list[Tensor]], None]


def composed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _heads(x: Tensor) -> Tensor:
    return x.view(1, -1, 2, 32).transpose(1, 2)


def by_rows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Heads beside each other in memory, as projections leave them."""
    q, k, v = _heads(q), _heads(k), _heads(v)
    return fused(q, k, v).transpose(1, 2).flatten(2)


@dataclass(frozen=True)
class Case:
    """Attention of some heads.

    Attributes:
        function: What computes it.
        queries: How many there are.
        keys: Likewise.
        size: Of a head.
        value: Of a value.
        mask: Shape and type of a mask, None without one.
        rows: Queries of a tile.
        block: Keys of a block of the stream.
    """

    function: Attention
    queries: int = 64
    keys: int = 128
    size: int = 32
    value: int = 32
    mask: tuple[tuple[int, ...], torch.dtype | None] | None = None
    rows: int = 64
    block: int = 32

    def tensors(self, dtype: torch.dtype) -> list[Tensor]:
        """Return the arguments."""
        generator = torch.Generator().manual_seed(7)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator).to(dtype)

        if self.function is by_rows:
            sizes = (self.queries, self.keys, self.keys)
            return [normal(1, n, 2 * self.size) for n in sizes]
        made = [
            normal(1, 2, self.queries, self.size),
            normal(1, 2, self.keys, self.size),
            normal(1, 2, self.keys, self.value),
        ]
        if self.mask is not None:
            shape, kind = self.mask
            mask = normal(*shape)
            made.append(mask > -0.5 if kind is torch.bool else mask)
        return made


CASES = {
    "composed": Case(composed),
    "fused": Case(fused, size=64, value=32),
    "wide": Case(fused, keys=192, size=128, value=128, block=64),
    # Eight subgroups have no more than 16 rows each: four have no room for 32.
    "eight": Case(fused, queries=256, size=128, value=128, rows=128),
    "causal": Case(causal, queries=128, rows=128),
    "edges": Case(fused, keys=104),
    "truths": Case(masked, mask=((1, 1, 64, 128), torch.bool)),
    "terms": Case(masked, mask=((1, 2, 64, 128), None)),
    "keys": Case(masked, keys=104, mask=((1, 1, 1, 104), torch.bool)),
    "rows": Case(by_rows),
    # The last tile begins earlier, so that it ends with the queries.
    "overlapping": Case(causal, queries=100, keys=128),
    "overlapping-terms": Case(masked, queries=100, mask=((1, 2, 100, 128), None)),
}


def imported(case: Case, tensors: list[Tensor]) -> ImportedGraph:
    graph = fx.symbolic_trace(case.function)
    return import_graph(graph, tensors, device=torch.device("cuda", 0))


def streamed(case: Case, text: str, target: str) -> ir.Module:
    """Lower a graph to one kernel that is streamed, whatever is predicted of it."""
    chosen = parse_target(target)
    module = ir.Module.parse(text)
    steps = graph_steps(
        *(chosen.reference, "never", "all", 0, False, None), target=chosen
    )
    run_pipeline(Pipeline(steps_between(steps, None, Phase.TILE_GRAPH)), module)
    number = ir.IntegerType.get_signless(64)
    operators = [
        op.operation
        for function in functions_of(module.operation)
        for op in function.entry_block
        if op.operation.name.startswith("tile_graph.")
    ]
    for op in operators:
        if op.name == "tile_graph.connect":
            op.attributes["level"] = ir.StringAttr.get("shared")
    shape = operators[-1].results[0].type.shape
    rows = max(n for n, extent in enumerate(shape) if extent == case.queries)
    sizes = [extent if n == len(shape) - 1 else 1 for n, extent in enumerate(shape)]
    sizes[rows] = case.rows
    operators[-1].attributes["tile"] = tile_attribute(sizes)
    operators[-1].attributes["stream_step"] = ir.IntegerAttr.get(number, case.block)
    run_pipeline(Pipeline(steps_between(steps, Phase.TILE_GRAPH, Phase.TILED)), module)
    return module


def check(case: Case, dtype: str, target: str, run: Run) -> None:
    """Run a case; its error may be some of what torch's own has."""
    tensors = case.tensors(TYPES[dtype])
    graph = imported(case, tensors)
    inputs = [x.contiguous() for x in graph.prepare(tensors)]
    with make_context(), ir.Location.unknown():
        module = streamed(case, graph.text, target)
        (kernel,) = kernels_of(module.operation)
        assert SUBGROUP_ROWS in kernel.attributes
        (call,) = operations_of(module.operation, func.CallOp)
        *given, _ = call.operands
        shape = call.results[0].type.shape
        out = torch.full(list(shape), torch.nan, dtype=TYPES[dtype])
        values = [*(given_as(value, inputs) for value in given), out]
        run(kernel, parse_target(target), values)
    found = graph.finish(list(tensors), [out])
    found = found[0] if isinstance(found, tuple | list) else found
    exact = case.function(
        *(x.double() if x.is_floating_point() else x for x in tensors)
    )
    eps = torch.finfo(TYPES[dtype]).eps
    found = found.double().reshape(exact.shape)
    torch.testing.assert_close(found, exact, rtol=2 * eps, atol=2 * eps)


def given_as(value: ir.Value, inputs: list[Tensor]) -> Tensor:
    """Return the argument that an operand of a kernel is, in its shape."""
    shape = list(value.type.shape)
    while not isinstance(value, ir.BlockArgument):
        value = value.owner.operands[0]
    return inputs[value.arg_number].view(shape)


def interpret(kernel: func.FuncOp, target: Target, values: list[Tensor]) -> None:
    """Run a kernel in the interpreter, which notices races."""
    launch(lowered(kernel, target), as_arrays(values))


def lowered(kernel: func.FuncOp, target: Target, *, boxes: bool = True) -> ir.Module:
    """Return a module with a kernel in the gpu dialect.

    Args:
        kernel: The kernel.
        target: What it is for.
        boxes: Whether the tensor memory accelerator copies, where there is one.
    """
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        kernel.operation.clone()
    shape = BlockShape.of(target)
    shape = replace(shape, has_bulk_copies=boxes and shape.has_bulk_copies)
    run_pipeline(Pipeline(block_steps(shape)), module)
    return module


def as_arrays(values: list[Tensor]) -> list[np.ndarray]:
    """Return tensors as the interpreter takes them: bits of halves."""
    bits = [x.view(torch.int16) if x.dtype in TYPES.values() else x for x in values]
    return [x.numpy() for x in bits]


def emulate(kernel: func.FuncOp, target: Target, values: list[Tensor]) -> None:
    """Run the machine code of a kernel."""
    (binary,) = operations_of(compile_kernel(kernel, target).operation, gpu.BinaryOp)
    emulate_binary(binary, values)


@pytest.mark.sample(7)
@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", CASES)
def test_interpreted_attention_is_torchs(
    name: str, dtype: str, target: str, whole: bool
) -> None:
    rest = dtype == "f16" or target == "nvvm:sm_90a"
    if rest and not whole and name != "composed":
        pytest.skip("one of those of `--whole`")
    check(CASES[name], dtype, target, interpret)


def test_scores_that_are_larger_than_all_operands_are_no_sums_of_parts() -> None:
    plan = only_plan((4, 32, 4096, 128), "nvvm:sm_90a")
    assert (plan["subgroup_rows"], tuple(plan["tile"])) == (16, (1, 1, 128, 128))


@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx942"])
def test_weights_behind_a_softmax_are_streamed_and_not_summed_in_parts(
    target: str,
) -> None:
    """The product of weights and values alone would leave units idle."""
    assert "stream_step" in only_plan((4, 12, 512, 64), target)


@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx942"])
def test_numbers_of_queries_that_no_tile_divides_are_streamed(target: str) -> None:
    assert "stream_step" in only_plan((4, 12, 197, 64), target)


def only_plan(shape: tuple[int, ...], name: str) -> dict[str, Any]:
    """Return the plan of attention in bf16, which is one kernel."""
    tensors = [torch.empty(shape, dtype=torch.bfloat16) for _ in range(3)]
    graph = import_graph(
        fx.symbolic_trace(fused), tensors, device=torch.device("cuda", 0)
    )
    target = parse_target(name)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(graph.text)
        lower_to_tiles(module, device_options(target), Phase.SCHEDULED, target=target)
        (step,) = summarize(find_function(module.operation, "main")).steps
    return dict(step.plan)


def changed(change: Callable[[str], str], *, boxes: bool = True) -> Run:
    """Return what runs a kernel whose code in the gpu dialect was changed."""

    def run(kernel: func.FuncOp, target: Target, values: list[Tensor]) -> None:
        text = change(str(lowered(kernel, target, boxes=boxes)))
        launch(ir.Module.parse(text), as_arrays(values))

    return run


def without(number: int) -> Callable[[str], str]:
    """Return what takes a barrier out of code."""

    def change(text: str) -> str:
        parts = text.split("gpu.barrier\n")
        assert len(parts) > number + 1
        return "gpu.barrier\n".join(
            [*parts[:number], parts[number] + parts[number + 1], *parts[number + 2 :]]
        )

    return change


def loosened(text: str) -> str:
    """Let one group of copies more be on its way."""
    wait = re.compile(r"(?<=cp\.async\.wait\.group )\d+")
    changed, count = wait.subn(lambda found: str(int(found[0]) + 1), text)
    assert count
    return changed


def unfenced(text: str) -> str:
    """Let warpgroups read what was not fenced."""
    return "\n".join(line for line in text.split("\n") if "fence.proxy" not in line)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "target", "change"),
    [
        ("edges", "nvvm:sm_80", without(0)),
        ("edges", "nvvm:sm_80", without(1)),
        ("edges", "nvvm:sm_80", loosened),
        ("wide", "nvvm:sm_90a", without(0)),
        ("wide", "nvvm:sm_90a", unfenced),
        ("eight", "nvvm:sm_90a", without(0)),
    ],
)
def test_code_that_waits_less_races(
    name: str, target: str, change: Callable[[str], str]
) -> None:
    with pytest.raises(RaceError):
        check(CASES[name], "bf16", target, changed(change, boxes=False))


@pytest.mark.skipif(bool(emulated_gpu.missing()), reason=emulated_gpu.missing())
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["composed", "causal", "edges"])
def test_machine_code_gives_what_torch_gives(name: str) -> None:
    dtype = "bf16" if name == "composed" else "f16"
    check(CASES[name], dtype, "rocdl:gfx942", emulate)
