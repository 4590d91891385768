"""Bytes moved as the schedule predicts them against bytes counted by cachegrind.

    python benchmarks/traffic.py [--cases NAME ...] [-o FILE]

Every generated kernel of the subgraphs runs once, alone, on one thread, after its
operands have left the caches, in a simulation of the caches that the device description
has. Cachegrind knows no 512-bit vectors, so kernels are compiled for AVX2; the plan is
the same. It needs `valgrind` and a C compiler.

`dram` is what the last cache misses, `l3` what the cache before it misses. A kernel is
memory-bound if the predicted time of the level is longer than that of its arithmetic.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

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
from magweld.codegen.llvm_text import kernel_signatures
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.host_function import read_host_function
from magweld.passes.cpu.pipeline import cpu_pipeline
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.execution import run_pipeline
from magweld.passes.phases import Phase
from magweld.targets import device
from magweld.targets.device import ARITHMETIC

DRIVER = Path(__file__).with_name("traffic_driver.c")
NEEDED = ("valgrind", "cc")
LINE = 64
FIRST = "l1"
# As of the caches of most x86 processors; their sizes are those of the device.
WAYS = {FIRST: 8, "l2": 8, "l3": 16}
# What valgrind can run.
CPU, FEATURES = "haswell", "+avx2,+fma"
# Cachegrind's names for misses of its last cache: data that is read, and written.
MISSES = ("DLmr", "DLmw")
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
    operands: tuple[tuple[int, Tensor | None], ...]
    step: dict[str, Any]


@dataclass(frozen=True)
class Level:
    """A memory level with the cache in front of it, whose misses are counted."""

    name: str
    cache: str
    capacity: int
    ways: int


def levels() -> list[Level]:
    """Return the levels behind the caches that cachegrind can simulate."""
    known = device("cpu").levels
    return [
        Level(lvl.name, above.name, above.capacity, WAYS[above.name])
        for lvl, above in pairwise(known)
        if above.name in WAYS and above.name != FIRST
    ]


def compiled(case: Case) -> tuple[CompiledGraph, list[Tensor]]:
    """Return the graph of a case, without library calls, and its prepared inputs."""
    graphs = []
    options = CompileOptions(library="never")

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
    steps = [s for g in graph.report()["graphs"] for s in g["steps"]]
    generated = [step for step in steps if step["kind"] == "generated"]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(graph.mlir(Phase.TILED))
        host = read_host_function(module)
        calls = [call for call in host.calls if call.kind == "kernel"]
        for op in list(module.body.operations):
            if "tile_graph.kernel" not in op.attributes:
                op.erase()
        unit = VectorUnit(target.vector_bits, target.vector_registers)
        run_pipeline(cpu_pipeline(unit), module)
        signatures = {s.symbol: s for s in kernel_signatures(module)}
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
                step,
            )
            for call, launch, step in zip(calls, launches, generated, strict=True)
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


def counted(objects: bytes, kernel: Kernel, level: Level) -> int:
    """Return the bytes that a kernel moves from and to a level."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.o").write_bytes(objects)
        built = ["cc", "-O1", f"-DLAUNCH={kernel.launch}", str(DRIVER), "kernels.o"]
        subprocess.run([*built, "-lm", "-o", "driver"], cwd=folder, check=True)
        operands = []
        for number, (size, tensor) in enumerate(kernel.operands):
            file = "-" if tensor is None else f"operand_{number}"
            if tensor is not None:
                (folder / file).write_bytes(tensor.contiguous().numpy().tobytes())
            operands += [str(size), file]
        first = device("cpu").level(FIRST)
        simulation = [
            "valgrind",
            "--tool=cachegrind",
            "--cache-sim=yes",
            f"--D1={first.capacity},{WAYS[FIRST]},{LINE}",
            f"--LL={level.capacity},{level.ways},{LINE}",
            "--cachegrind-out-file=counts",
        ]
        # The kernel may call others, memset for one: what the rest of the program
        # misses is counted alone and taken away.
        totals = []
        for runs in ("1", "0"):
            program = ["./driver", runs, str(2 * level.capacity), *operands]
            done = subprocess.run(
                [*simulation, *program], cwd=folder, capture_output=True, text=True
            )
            if done.returncode:
                raise SystemExit(f"{kernel.step['name']}: {done.stderr}")
            totals.append(misses((folder / "counts").read_text()))
        return LINE * (totals[0] - totals[1])


def misses(counts: str) -> int:
    """Return how many lines a program misses, from a file of cachegrind's."""
    rows = dict(line.split(": ", 1) for line in counts.splitlines() if ": " in line)
    columns = dict(zip(rows["events"].split(), rows["summary"].split(), strict=True))
    return sum(int(columns[name]) for name in MISSES)


def run_case(name: str, target: HostTarget) -> list[dict[str, Any]]:
    """Count what the kernels of a case move."""
    graph, inputs = compiled(NAMES[name])
    objects, kernels = kernels_of(graph, inputs, target)
    results = []
    for kernel in kernels:
        plan = kernel.step["plan"]
        predicted = plan.get("moved_after", {})
        if not predicted:
            continue
        shares = plan["predicted_shares"]
        results.append(
            {
                "case": name,
                "kernel": kernel.step["name"],
                "operators": len(kernel.step["operators"]),
                "memory_bound": max(shares, key=shares.__getitem__) != ARITHMETIC,
                "predicted": predicted,
                "counted": {
                    lvl.name: counted(objects, kernel, lvl)
                    for lvl in levels()
                    if lvl.name in predicted
                },
            }
        )
    return results


def show(results: list[dict[str, Any]]) -> None:
    """Print predicted and counted megabytes of each kernel."""
    names = [level.name for level in levels()]
    table = Table("case", "kernel", "operators", "bound by")
    for name in names:
        table.add_column(f"{name}: predicted / counted MB")
        table.add_column("ratio")
    for result in results:
        cells = []
        for name in names:
            predicted, found = (
                result[k].get(name, 0) for k in ("predicted", "counted")
            )
            cells += [f"{predicted / 1e6:.2f} / {found / 1e6:.2f}"]
            cells += [f"{predicted / found:.2f}" if found else "-"]
        bound = "memory" if result["memory_bound"] else "arithmetic"
        operators = str(result["operators"])
        table.add_row(result["case"], result["kernel"], operators, bound, *cells)
    Console(width=140).print(table)


def main() -> None:
    """Count the chosen cases."""
    options = benchmark_options(__doc__, NAMES, 1, "benchmarks/results/traffic.json")
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"not found: {', '.join(missing)}")
    host = HostTarget.detect()
    target = HostTarget(host.triple, CPU, FEATURES)
    results = []
    for name in options.cases:
        results += run_case(name, target)
        show(results)
    write_report(options.o, options.threads, results)


if __name__ == "__main__":
    main()
