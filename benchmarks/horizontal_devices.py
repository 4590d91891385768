"""Many equal small operators for CPUs and GPUs: launches, search and compile seconds.

    python benchmarks/horizontal_devices.py [--cases NAME ...] [--members N]
        [--targets T ...] [--rows N] [-o FILE]

`ragged` has members of four different extents, whose kernels share a launch. Seconds
are CPU times of this process, for one cold compilation; `search` is the part
of it that finds what runs in one launch. What is compiled for the CPU and, where the
emulator is found (`emulated_gpu.py`), for AMD runs once and is compared with torch;
code for NVIDIA is compiled alone. Returns 1 where a result is wrong, or one launch is
several.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from emulated_gpu import EmulatedGpu, compile_in_process, emulated, missing
from horizontal import compile_seconds, launches, search_seconds
from horizontal_models import WIDTH, Branches, linear, norm
from reporting import report_file, reported
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions
from magweld.importer.importer import import_graph

CASES: dict[str, Callable[[int], nn.Module]] = {
    "linears": partial(Branches, linear),
    "norms": partial(Branches, norm),
    "tanh": partial(Branches, nn.Tanh),
    "ragged": partial(Branches, linear),
}
# Rows of the members of `ragged`, in multiples of those of the others.
EXTENTS = (1, 2, 3, 5)
TARGETS = ("cpu", "nvvm:sm_90a", "rocdl:gfx942")
_GPU = torch.device("cuda", 0)
# Largest difference from torch: products and sums are added in another order.
_TOLERANCE = 1e-4


def captured(module: nn.Module, inputs: Sequence[Tensor]) -> tuple[Any, list[Tensor]]:
    """Return the graph of a module, and what it is called with: parameters as well."""
    seen: list[tuple[Any, list[Tensor]]] = []

    def backend(graph: Any, tensors: Any) -> Any:
        seen.append((graph, list(tensors)))
        return graph

    traced = frontend.trace(module, backend=backend)
    for _ in range(2):
        traced(*inputs)
    return seen[0]


def inputs_of(name: str, options: argparse.Namespace) -> list[Tensor]:
    """Return an input for each member."""
    extents = EXTENTS if name == "ragged" else (1,)
    return [
        torch.randn(options.rows * extents[member % len(extents)], WIDTH)
        for member in range(options.members)
    ]


def run_case(name: str, target: str, options: argparse.Namespace) -> dict[str, Any]:
    """Compile a case for a target, and run it where that can be."""
    module = CASES[name](options.members).eval()
    inputs = inputs_of(name, options)
    graph, tensors = captured(module, inputs)
    compiled = for_cpu if target == "cpu" else partial(for_gpu, target=target)
    found = compiled(graph, tensors)
    run = found.pop("run")
    if run is not None:
        pairs = zip(run(*tensors), module(*inputs), strict=True)
        found["error"] = max(float((a - b).abs().max()) for a, b in pairs)
    return {"case": f"{name}-{options.members}", "target": target, **found}


def for_cpu(graph: Any, tensors: Sequence[Tensor]) -> dict[str, Any]:
    """Compile a graph for this machine."""
    made = compile_graph(graph, tensors, options=CompileOptions())
    return {
        "launches": launches(made),
        "search_cpu_s": search_seconds(made),
        "compile_cpu_s": compile_seconds(made),
        "run": made,
    }


def for_gpu(graph: Any, tensors: Sequence[Tensor], target: str) -> dict[str, Any]:
    """Compile a graph for a GPU; an AMD GPU is emulated."""
    imported = import_graph(graph, tensors, look_ups=True, device=_GPU)
    start = time.process_time()
    imported, program = compile_in_process(imported, target)
    seconds = time.process_time() - start
    run = None
    if target.startswith("rocdl") and not missing():
        run = emulated(imported, program, EmulatedGpu())
    return {
        "launches": len(program.launches),
        "members": [launch.members for launch in program.launches],
        "kernels": [launch.kernels for launch in program.launches],
        "compile_cpu_s": seconds,
        "run": run,
    }


def is_right(row: dict[str, Any]) -> bool:
    """Tell whether all members are one launch and compute what torch does."""
    return row["launches"] == 1 and row.get("error", 0.0) <= _TOLERANCE


def show(results: Sequence[dict[str, Any]]) -> None:
    """Print the results as a table."""
    table = Table("case", "target", "launches", "search s", "compile s", "error")
    for row in results:
        search = row.get("search_cpu_s")
        table.add_row(
            row["case"],
            row["target"],
            str(row["launches"]),
            "" if search is None else f"{search:.2f}",
            f"{row['compile_cpu_s']:.1f}",
            f"{row['error']:.1e}" if "error" in row else "not run",
        )
    Console(width=100).print(table)


def main() -> int:
    """Run the chosen cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--members", type=int, default=512)
    parser.add_argument("--targets", nargs="*", choices=TARGETS, default=TARGETS)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    options.threads = torch.get_num_threads()
    torch.manual_seed(0)
    rows: list[dict[str, Any]] = []

    def runs() -> Iterator[dict[str, Any]]:
        for target in options.targets:
            for name in options.cases:
                rows.append(run_case(name, target, options))
                yield rows[-1]

    with torch.no_grad():
        show(reported(runs(), options, show))
    return 0 if all(map(is_right, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
