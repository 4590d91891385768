"""Bytes moved as the schedule predicts them against bytes counted by cachegrind.

    python benchmarks/traffic.py [--cases NAME ...] [-o FILE]

Every generated kernel of the subgraphs runs once, alone, on one thread, after its
operands have left the caches, in a simulation of the caches that the device description
has. Cachegrind knows no 512-bit vectors, so kernels are compiled for AVX2; the plan is
the same. It needs `valgrind` and a C compiler.

`dram` is what the last cache misses, `l3` what the cache before it misses. A kernel is
memory-bound if the predicted time of a level is longer than that of its arithmetic.
Nothing is sampled or scaled: a case takes a second to minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cachegrind import Operand, counted, levels, require_tools
from reporting import benchmark_options, write_report
from rich.console import Console
from rich.table import Table
from subgraph_cases import CASES, Case
from torch import Tensor, fx

from magweld import frontend
from magweld.api import CompiledGraph, compile_graph
from magweld.artifact import ExternalStep, Place, Program
from magweld.bindings import ir
from magweld.codegen.host import HostTarget
from magweld.codegen.kernels import compile_kernels
from magweld.codegen.launch import Launch
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.host_function import read_host_function
from magweld.kernel_code import lower_kernels
from magweld.passes.infrastructure.execution import RunOptions
from magweld.passes.infrastructure.phases import Phase
from magweld.targets.device import ARITHMETIC

OUTERMOST = "dram"
# Predictions that are off by more than this factor are named.
FAR = 1.15
# What valgrind can run.
CPU, FEATURES = "haswell", "+avx2,+fma"
NAMES = {case.name: case for case in CASES}


@dataclass(frozen=True)
class Kernel:
    """A kernel to count.

    Attributes:
        launch: The function that runs it on a table of pointers.
        operands: Bytes of each of its operands, and its contents; None for zeros.
        step: What the schedule says of it, as in reports.
    """

    launch: str
    operands: tuple[Operand, ...]
    step: dict[str, Any]


def compiled(case: Case) -> tuple[CompiledGraph, list[Tensor]]:
    """Return the graph of a case, without library calls, and its prepared inputs."""
    graphs = []
    # What is counted is one kernel at a time.
    options = CompileOptions(library="never", batch=False)

    def backend(graph: fx.GraphModule, inputs: Sequence[Tensor]) -> CompiledGraph:
        made = compile_graph(graph, inputs, options=options)
        if not isinstance(made, CompiledGraph):
            raise SystemExit(f"{case.name}: expected a graph without control flow")
        graphs.append((made, list(made.imported.prepare(inputs))))
        return made

    frontend.trace(case.function, backend=backend)(*case.arguments())
    (only,) = graphs
    return only


def kernels_of(
    graph: CompiledGraph, inputs: Sequence[Tensor], target: HostTarget
) -> tuple[bytes, list[Kernel]]:
    """Compile a graph's kernels for another CPU; an object file and what is in it."""
    steps = {
        tuple(operator["name"] for operator in step["operators"]): step
        for found in graph.report()["graphs"]
        for step in found["steps"]
        if step["kind"] == "generated"
    }
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(graph.mlir(Phase.TILED))
        host = read_host_function(module)
        calls = [call for call in host.calls if call.kind == "kernel"]
        signatures = lower_kernels(module, target, RunOptions())
        launches = [
            Launch(
                f"launch_{number}",
                signatures[call.callee],
                tuple(range(signatures[call.callee].pointers)),
                parallel=False,
            )
            for number, call in enumerate(calls)
        ]
        kernels = [
            Kernel(
                launch.symbol,
                tuple(
                    (host.bytes_of(value), _contents(graph, value, inputs))
                    for value in (*call.operands, *call.results)
                ),
                steps[operators],
            )
            for call, launch in zip(calls, launches, strict=True)
            for operators in [tuple(call.report["operators"])]
            if operators in steps  # others only make weights for these
        ]
        return compile_kernels(module, launches, target), kernels


def _copies(program: Program) -> dict[int, int]:
    """Return what each checked tensor of row numbers is a copy of, by value."""
    return {
        step.writes[0]: step.reads[-1]
        for step in program.steps
        if isinstance(step, ExternalStep)
    }


def _contents(graph: CompiledGraph, value: int, inputs: Sequence[Tensor]) -> Any:
    """Return what a value holds as far as traffic depends on it, None for zeros."""
    values = graph.program.values
    held = values[_copies(graph.program).get(value, value)]
    return inputs[held.index] if held.place is Place.INPUT else None


def run_case(name: str, target: HostTarget) -> list[dict[str, Any]]:
    """Count what the kernels of a case move."""
    graph, inputs = compiled(NAMES[name])
    objects, kernels = kernels_of(graph, inputs, target)
    results = []
    for kernel in kernels:
        plan = kernel.step["plan"]
        shares = plan.get("predicted_shares", {})
        # What fits no cache runs as one tile, of which nothing is predicted.
        slowest = max(shares, key=shares.__getitem__, default="unknown")
        results.append(
            {
                "case": name,
                "kernel": kernel.step["name"],
                "operators": len(kernel.step["operators"]),
                "slowest": slowest,
                "predicted": plan.get("moved_after", {}),
                "counted": counted(objects, kernel.launch, kernel.operands),
            }
        )
    return [result | {"cells": _cells(result)} for result in results]


def _cells(result: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a kernel in tables of results."""
    cells: dict[str, Any] = {name: result[name] for name in ("operators", "slowest")}
    for level in reversed(levels()):
        for column in ("predicted", "counted"):
            megabytes = result[column].get(level.name, 0) / 1e6
            cells[f"{level.name} {column} MB"] = megabytes
        cells[f"{level.name} ratio"] = _ratio(result, level.name)
    return cells


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Say how far predictions of the outermost level are off, where memory decides."""
    ratios = {
        f"{result['case']} {result['kernel']}": ratio
        for result in results
        for ratio in [_ratio(result, OUTERMOST)]
        if result["slowest"] != ARITHMETIC and ratio
    }
    off = {name: r for name, r in ratios.items() if not 1 / FAR <= r <= FAR}
    found = f"{min(ratios.values()):.2f}..{max(ratios.values()):.2f}" if ratios else "-"
    names = ", ".join(off) or "none"
    return {
        "memory_bound": len(ratios),
        "outside": off,
        "summary": (
            f"memory-bound kernels: {len(ratios)}, {OUTERMOST} predicted/counted "
            f"{found}, outside {FAR - 1:.0%}: {names}"
        ),
    }


def _ratio(result: dict[str, Any], level: str) -> float:
    """Return predicted over counted bytes of a level, 0 if one is not known."""
    predicted, found = (result[k].get(level, 0) for k in ("predicted", "counted"))
    return predicted / found if found else 0.0


def show(results: list[dict[str, Any]]) -> None:
    """Print predicted and counted megabytes of each kernel."""
    names = [level.name for level in reversed(levels())]
    table = Table("case", "kernel", "operators", "slowest")
    for name in names:
        table.add_column(f"{name}: predicted / counted MB")
        table.add_column("ratio")
    for result in results:
        cells = []
        for name in names:
            numbers = (result[k].get(name, 0) / 1e6 for k in ("predicted", "counted"))
            ratio = _ratio(result, name)
            cells += [" / ".join(f"{number:.2f}" for number in numbers)]
            cells += [f"{ratio:.2f}" if ratio else "-"]
        operators = str(result["operators"])
        table.add_row(
            result["case"], result["kernel"], operators, result["slowest"], *cells
        )
    Console(width=140).print(table)


def main() -> None:
    """Count the chosen cases."""
    options = benchmark_options(__doc__, NAMES, 1, __file__)
    require_tools()
    host = HostTarget.detect()
    target = HostTarget(host.triple, CPU, FEATURES)
    results = []
    for name in options.cases:
        results += run_case(name, target)
        found = summary(results)
        show(results)
        print(found["summary"])
        write_report(options.o, options.threads, results, **found)


if __name__ == "__main__":
    main()
