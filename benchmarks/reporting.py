"""Owns what the benchmarks share: command line options and the report file."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from llvmlite import binding
from reports import cell_text
from rich.console import Console
from rich.table import Table

from magweld import env

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def benchmark_options(
    description: str | None,
    cases: Iterable[str],
    rounds: int,
    script: str,
    *,
    dtypes: bool = False,
    numbers: Mapping[str, int] | None = None,
) -> argparse.Namespace:
    """Parse the command line and set the number of threads.

    Args:
        description: Text of the help.
        cases: Names that may be chosen; all are taken by default.
        rounds: Default of `--rounds`.
        script: File of the benchmark, after which its report is named.
        dtypes: Whether the type of floats may be chosen, as `dtype`.
        numbers: Further whole numbers that may be chosen, with their defaults.
    """
    names = list(cases)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", nargs="*", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--no-torch-compile", action="store_true")
    if dtypes:
        parser.add_argument("--dtype", choices=DTYPES, default="f32")
    for name, default in (numbers or {}).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("-o", type=Path, default=report_file(script))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    return options


def report_file(script: str) -> Path:
    """Return where a benchmark writes its report, from wherever it is started.

    Not among the results that the repository holds: those are of `full_run.py`.
    """
    return Path(__file__).with_name("runs") / f"{Path(script).stem}.json"


def write_report(
    path: Path, threads: int, results: list[dict[str, Any]], **summary: Any
) -> None:
    """Write results as JSON, with the machine that gave them and a summary."""
    report = provenance() | {"threads": threads} | summary | {"results": results}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")


def reported(
    results: Iterable[dict[str, Any]],
    options: argparse.Namespace,
    show: Callable[[list[dict[str, Any]]], object] = lambda rows: None,
    **summary: Any,
) -> list[dict[str, Any]]:
    """Write the report anew after each result: an interrupted run keeps what it has.

    Args:
        results: What is measured, case by case as it is asked for.
        options: Has the file as `o`, and `threads`.
        show: Prints rows; called with each result.
        summary: Further fields of the report.

    Returns:
        All results.
    """
    found: list[dict[str, Any]] = []
    for result in results:
        found.append(result)
        show([result])
        write_report(options.o, options.threads, found, **summary)
    return found


def show_cells(results: Sequence[dict[str, Any]]) -> None:
    """Print rows of a report whose columns are in `cells`."""
    table = Table("case", *dict.fromkeys(name for r in results for name in r["cells"]))
    for result in results:
        table.add_row(result["case"], *map(cell_text, result["cells"].values()))
    Console(width=140).print(table)


def provenance() -> dict[str, Any]:
    """Return machine, instructions used, date, commit and versions of a run."""
    packages = ("torch", "torch-mlir", "llvmlite", "magweld")
    return {
        "machine": binding.get_host_cpu_name(),
        "cores": os.cpu_count(),
        "capability": {
            "torch": torch.backends.cpu.get_cpu_capability(),
            "magweld": env.CPU_CAPABILITY.get(),
        },
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "versions": {name: version(name) for name in packages}
        | {"python": platform.python_version()},
    }


def _commit() -> str:
    """Return the commit of this folder, marked if files differ from it."""
    try:
        run = subprocess.run(
            ["git", "describe", "--always", "--exclude=*", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()
