"""Owns the planning of whole models for a device that need not be here.

Nothing is computed and no code is made: a model is imported with tensors of the given
sizes and scheduled up to tiles, with all operators generated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import torch
from device_cases import stateless
from model_cases import CASES
from reporting import report_file, show_cells, write_report
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.bindings import ir
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.dialects.tile_graph import operators_of
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.passes.analysis.operator_model import operator_model
from magweld.passes.analysis.summary import summarize
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.ir.utils import find_function
from magweld.passes.tiling.regions import OperatorKind, OperatorModel

# What reduces, in the order of the names of a group.
REDUCING = (OperatorKind.CONTRACTION, OperatorKind.CONVOLUTION, OperatorKind.REDUCTION)
Inputs = tuple[Tensor, ...]
# A case and its figures.
Row = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Group:
    """Operators that share a kernel.

    Attributes:
        operators: Kind, extents and node of each, without the numbers of nodes.
        reductions: How many of them reduce.
    """

    operators: tuple[str, ...]
    reductions: int


@dataclass(frozen=True)
class ModelPlan:
    """What a schedule says of a model.

    Attributes:
        kernels: Generated ones.
        through_torch: Operators that have no generated code.
        moved: Bytes from and to the outermost memory, of the generated kernels.
        intermediate: Bytes of the tensors between the steps.
        seconds: Predicted, of the generated kernels.
        groups: Of more than one operator.
    """

    kernels: int
    through_torch: int
    moved: int
    intermediate: int
    seconds: float
    groups: tuple[Group, ...]


def imported(make: Callable[[], nn.Module], inputs: Inputs) -> ImportedGraph:
    """Import a model; its inputs are never read."""
    torch.manual_seed(0)
    model = make().eval()
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    tensors = [*inputs, *(tensor.detach() for tensor in state.values())]
    call = stateless(model, len(inputs), list(state))
    with torch.no_grad():
        traced = make_fx(call, tracing_mode="fake", pre_dispatch=True)(*tensors)
    return import_graph(traced, tensors, look_ups=True)


def imported_case(name: str, batch: int) -> ImportedGraph:
    """Import a model of `model_cases.py` with a size of the batch."""
    case = CASES[name]
    sizes = ((x.shape[0] * batch, *x.shape[1:]) for x in case.inputs(1))
    kinds = [x.dtype for x in case.inputs(1)]
    inputs = (torch.empty(s, dtype=k) for s, k in zip(sizes, kinds, strict=True))
    return imported(case.build, tuple(inputs))


def planned(graph: ImportedGraph, device: str, fusion: str = "all") -> ModelPlan:
    """Schedule a model for a device as `magweld.targets.device` takes it."""
    options = CompileOptions(device=device, library="never", fusion=fusion)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(graph.text)
        lower_to_tiles(module, options, Phase.SCHEDULED)
        function = find_function(module.operation, "main")
        summary = summarize(function)
        groups = tuple(_groups(function))
    steps = {step.name for step in summary.steps}
    generated = [step.plan or {} for step in summary.steps if step.plan is not None]
    between = {
        (edge.producer, edge.maker): edge.bytes
        for edge in summary.edges
        if edge.producer in steps and edge.consumer in steps
    }
    return ModelPlan(
        kernels=len(generated),
        through_torch=len(summary.steps) - len(generated),
        moved=sum(plan.get("traffic_after", 0) for plan in generated),
        intermediate=sum(between.values()),
        seconds=sum(plan.get("predicted_seconds", 0.0) for plan in generated),
        groups=groups,
    )


def _groups(function: Any) -> Iterator[Group]:
    for op in function.regions[0].blocks[0].operations:
        if op.operation.name != "tile_graph.subgraph":
            continue
        models = [operator_model(operator) for operator in operators_of(op)]
        if len(models) > 1:
            reducing = sum(model.kind in REDUCING for model in models)
            yield Group(tuple(map(_described, models)), reducing)


def _described(model: OperatorModel) -> str:
    """Return what makes two operators of groups alike: kind and extents of loops."""
    return f"{model.kind.value} {'x'.join(map(str, model.extents))}"


def options(
    description: str | None,
    script: str,
    cases: Iterable[str],
    *,
    batch: int,
    devices: Sequence[str] = ("v100",),
) -> argparse.Namespace:
    """Parse the command line of a benchmark that plans models.

    Args:
        description: Text of the help.
        script: File of the benchmark, after which its report is named.
        cases: Names that may be chosen; all are taken by default.
        batch: Default of `--batch`.
        devices: Default of `--devices`.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = list(cases)
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--devices", nargs="+", default=list(devices))
    parser.add_argument("-o", type=Path, default=report_file(script))
    return parser.parse_args()


def report(
    rows: Callable[[argparse.Namespace], Iterable[Row]], chosen: argparse.Namespace
) -> None:
    """Show rows and write them as each is there: an interrupted run keeps some.

    Args:
        rows: Plans what was chosen.
        chosen: What `options` has parsed.
    """
    results: list[dict[str, Any]] = []
    for case, cells in rows(chosen):
        results.append({"case": case, "cells": cells})
        show_cells(results[-1:])
        write_report(chosen.o, 1, results, batch=chosen.batch)
    show_cells(results)


def milliseconds(plan: ModelPlan) -> float:
    """Return the predicted time of a plan."""
    return plan.seconds * 1e3


def mebibytes(size: int) -> float:
    """Return a number of bytes in MiB."""
    return size / (1 << 20)
