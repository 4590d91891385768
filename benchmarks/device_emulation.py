"""Results of code for GPUs against torch, without a GPU.

    python benchmarks/device_emulation.py [--cases NAME ...] [--targets T ...]

Every kernel of the small subgraphs and models of `device_cases.py` runs, all of its
blocks: AMD's machine code in an emulator (`emulated_gpu.py` says where that is found),
kernels for NVIDIA in the interpreter of the tests, which raises an error at every race.
Operators without code run through torch on the host. The results are compared with
torch's in double precision; memory that no kernel has written is NaN.

The report is written after each case, and `--resume` leaves out what it has. Cases take
turns in their types, so that a run that is ended early has seen every case.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from device_cases import MODELS, SUBGRAPHS, Captured, captured, in_turns
from device_coverage import DTYPES, in_child
from emulated_gpu import compile_in_process, emulated, machine_for, missing
from reporting import provenance, report_file, write_report
from reports import read_results

# Largest difference, relative to the largest result; half precision rounds between
# operators.
TOLERANCE = {"f32": 3e-5, "f16": 2e-2, "bf16": 1e-1}
TARGETS = ("rocdl:gfx942", "nvvm:sm_80")


@dataclass
class Emulation:
    """What a case gave.

    Attributes:
        case: Its name.
        target: What it was compiled for.
        dtype: Element type of its floating-point arguments.
        kernels: Launches of a call.
        externals: Operators that torch computed, with the reason where there is one.
        error: Largest difference from double precision, relative to its largest value;
            None where there is no result, or one that is no number.
        torch_error: The same of eager torch on the CPU: sines of large numbers, for
            example, are as far off there.
        seconds: Of the launches.
        problem: What stopped it.
        commit: Of this repository.
    """

    case: str
    target: str
    dtype: str = "f32"
    kernels: int = 0
    externals: list[str] = field(default_factory=list)
    error: float | None = None
    torch_error: float = 0.0
    seconds: float = 0.0
    problem: str = ""
    commit: str = ""

    @property
    def is_right(self) -> bool:
        """Tell whether the results are those of torch."""
        found = math.inf if self.error is None else self.error
        allowed = max(TOLERANCE[self.dtype], 2 * self.torch_error)
        return not self.problem and found <= allowed


def emulate(case: str, target: str, dtype: str) -> Emulation:
    """Compile a case and compare its results."""
    found = Emulation(case, target, dtype)
    one = captured(case, DTYPES[dtype])
    graph, program = compile_in_process(one.graph, target)
    machine = machine_for(graph, target)
    found.kernels = len(program.launches)
    found.externals = [f"{x.node.target}" for x in graph.externals.values()]
    result = emulated(graph, program, machine)(*one.tensors)
    found.seconds = sum(seconds for _, seconds in machine.driver.seconds)
    found.error = _error(one, result)
    with torch.no_grad():
        found.torch_error = _error(one, one.function(*one.tensors)) or 0.0
    return found


def _error(one: Captured, result: Any) -> float | None:
    exact = [x.double() if x.is_floating_point() else x for x in one.tensors]
    with torch.no_grad():
        expected = one.function(*exact)
    worst = 0.0
    many = isinstance(expected, tuple | list)
    if not many and isinstance(result, tuple | list):
        (result,) = result
    pairs = zip(result, expected, strict=True) if many else [(result, expected)]
    for mine, theirs in pairs:
        if mine.shape != theirs.shape:
            return None
        difference = (mine.double() - theirs.double()).abs().max().item()
        if math.isnan(difference):
            return None
        worst = max(worst, difference / max(theirs.abs().max().item(), 1e-30))
    return worst


def row(one: Emulation) -> str:
    """Return a line of the table."""
    state = one.problem or ("right" if one.is_right else "WRONG")
    apart = f", torch runs {', '.join(one.externals)}" if one.externals else ""
    error = "no numbers" if one.error is None else f"error {one.error:.1e}"
    return (
        f"{one.target} {one.dtype} {one.case}: {one.kernels} kernels{apart} | "
        f"{error}, {one.seconds:.0f} s | {state}"
    )


def known(path: Path) -> list[Emulation]:
    """Return what a report has, nothing if there is none."""
    rows = read_results(path) if path.exists() else []
    return [Emulation(**one) for row in rows for one in row["found"]]


def reported(found: Iterable[Emulation]) -> list[dict[str, Any]]:
    """Return the rows of a report: one a case, with a column a target and type."""
    names = [*SUBGRAPHS, *MODELS]
    ordered = sorted(found, key=lambda one: names.index(one.case))
    columns = sorted({_column(one) for one in ordered})
    return [
        {
            "case": case,
            "cells": dict.fromkeys(columns, "-") | {_column(x): cell(x) for x in ones},
            "found": [asdict(one) for one in ones],
        }
        for case, ones in (
            (case, list(group))
            for case, group in groupby(ordered, lambda one: one.case)
        )
    ]


def _column(one: Emulation) -> str:
    return f"{one.target.partition(':')[2]} {one.dtype}"


def cell(one: Emulation) -> str:
    """Return the error of a case, or what is wrong with it."""
    if one.problem:
        return one.problem
    error = "no numbers" if one.error is None else f"{one.error:.1e}"
    return error if one.is_right else f"WRONG: {error}"


def run(options: argparse.Namespace, found: list[Emulation]) -> None:
    """Add what becomes of the chosen cases that were not found yet, and report it."""
    done = {(one.case, one.dtype, one.target) for one in found}
    for case, dtype in in_turns(options.cases, options.dtypes):
        for target in options.targets:
            if (case, dtype, target) in done:
                continue
            one = in_child(emulate, (case, target, dtype), options.seconds)
            if isinstance(one, str):
                one = Emulation(case, target, dtype, problem=one)
            one.commit = provenance()["commit"]
            found.append(one)
            print(row(one), flush=True)
            write_report(options.output, 1, reported(found), totals=totals(found))


def totals(found: Sequence[Emulation]) -> dict[str, str]:
    """Return for each target and type how many of its cases are right."""
    columns: dict[str, list[bool]] = {}
    for one in found:
        columns.setdefault(f"{one.target} {one.dtype}", []).append(one.is_right)
    return {name: f"{sum(of)} of {len(of)} right" for name, of in columns.items()}


def main() -> int:
    """Run the cases that the command line names."""
    names = [*SUBGRAPHS, *MODELS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="*", choices=names, default=names)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument(
        "--dtypes", nargs="*", choices=list(DTYPES), default=list(DTYPES)
    )
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("-o", "--output", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    if missing() and any(name.startswith("rocdl") for name in options.targets):
        print(missing(), file=sys.stderr)
        return 2
    torch.set_num_threads(1)  # what threads hold does not come along with a fork
    found = known(options.output) if options.resume else []
    run(options, found)
    for column, total in totals(found).items():
        print(f"{column}: {total}")
    return 0 if all(one.is_right for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
