"""Which kernels compile for GPUs, and which operators are refused and why.

    python benchmarks/device_coverage.py [--cases NAME ...] [--targets T ...] [-o FILE]

The small subgraphs and models of `device_cases.py` are lowered for each target, no GPU
being there. Every kernel is compiled on its own: the table says how many of them have
code, and names for the others the reason. Operators without a lowering to linalg run
through torch on every target, and are counted apart.

A case is captured once for all targets. The targets of one backend share a plan, made
for the device of the first of them, and the kernels in the gpu dialect; with
`--own-plans` each target has its own. They are compiled in a process of their own: what
aborts in LLVM is a row of the table. The report is written after each of them, and
`--resume` leaves out what the report has.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from device_cases import MODELS, SUBGRAPHS, captured, in_turns
from reporting import provenance, report_file, write_report
from reports import read_results

from magweld.bindings import ir
from magweld.columns import shorten
from magweld.compiler import lower_to_tiles
from magweld.context import make_context
from magweld.device_compiler import device_options
from magweld.device_kernels import compile_for_targets, nodes_in
from magweld.importer.importer import ImportedGraph
from magweld.passes.gpu.structure import kernels_of
from magweld.targets import Target, parse_target

TARGETS = ("nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx90a", "rocdl:gfx942")
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_CASES = (*SUBGRAPHS, *MODELS)


@dataclass
class Coverage:
    """What became of a case on a target.

    Attributes:
        case: Its name.
        target: What is compiled for.
        dtype: Element type of its floating-point arguments.
        kernels: How many kernels the plan has.
        compiled: How many of them have code.
        externals: Operators that torch computes, kernels apart.
        refused: By reason, the operators of the kernels without code.
        problem: Why there is no plan.
        seconds: Of the compilation, with what the targets of a plan share.
        device: Which device the plan is for.
        commit: Of this repository.
    """

    case: str
    target: str
    dtype: str = "f32"
    kernels: int = 0
    compiled: int = 0
    externals: list[str] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)
    problem: str = ""
    seconds: float = 0.0
    device: str = ""
    commit: str = ""


def measure(graph: ImportedGraph, chosen: Sequence[Target]) -> list[Coverage]:
    """Compile each kernel of a graph for targets that are planned for one device."""
    externals = sorted({str(x.node.target) for x in graph.externals.values()})
    found = [
        Coverage("", str(target), externals=externals, device=target.reference)
        for target in chosen
    ]
    start = time.monotonic()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(graph.text)
        lower_to_tiles(module, device_options(chosen[0]), target=chosen[0])
        for function in kernels_of(module.operation):
            _compile(function, chosen, found)
    for one in found:
        one.seconds = time.monotonic() - start
    return found


def _compile(function: Any, chosen: Sequence[Target], found: list[Coverage]) -> None:
    """Compile a kernel for each target and count it."""
    for one in found:
        one.kernels += 1
    refused = compile_for_targets(function, chosen)
    for error, one in zip(refused, found, strict=True):
        if error is None:
            one.compiled += 1
        else:
            nodes = " ".join(nodes_in(function))
            one.refused.setdefault(reason_of(error), []).append(nodes)


def reason_of(error: Exception) -> str:
    """Return the id of a refusal, or what else stopped a compilation."""
    return getattr(error, "id", "") or str(error).splitlines()[0][:160]


def in_child(
    function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float
) -> Any:
    """Return what a function gives in a process of its own, or text on why not."""
    processes = multiprocessing.get_context("fork")
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(
        target=_send, args=(sender, function, arguments), daemon=True
    )
    process.start()
    sender.close()
    problem = f"not done in {seconds:.0f} s"
    if receiver.poll(seconds):
        try:
            return receiver.recv()
        except EOFError:
            process.join()
            problem = f"ended with status {process.exitcode}"
    process.kill()
    return problem


def _send(
    sender: Any, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    try:
        sender.send(function(*arguments))
    except Exception as error:
        lines = traceback.format_exception_only(error)[-1].splitlines()
        sender.send(lines[0][:200])


def reported(found: Iterable[Coverage]) -> list[dict[str, Any]]:
    """Return the rows of a report: one a case, with a column a target and type."""
    ordered = sorted(found, key=lambda one: _CASES.index(one.case))
    return [
        _reported(case, list(ones))
        for case, ones in groupby(ordered, lambda one: one.case)
    ]


def _reported(case: str, found: list[Coverage]) -> dict[str, Any]:
    places = {_column(target, dtype): "-" for dtype in DTYPES for target in TARGETS}
    counts = {_column(one.target, one.dtype): count_of(one) for one in found}
    externals = sorted({name for one in found for name in one.externals})
    rest: dict[str, list[str]] = {}
    for one in found:
        if rest_of(one) != "nothing":
            rest.setdefault(rest_of(one), []).append(_column(one.target, one.dtype))
    reasons = "; ".join(f"{why} ({', '.join(at)})" for why, at in rest.items())
    return {
        "case": case,
        "cells": places
        | counts
        | {
            "without code": reasons or "nothing",
            "through torch": ", ".join(externals) or "nothing",
        },
        "found": [asdict(one) for one in found],
    }


def _column(target: str, dtype: str) -> str:
    return f"{target.partition(':')[2]} {dtype}"


def count_of(one: Coverage) -> str:
    """Return how many kernels have code, of how many."""
    return "no plan" if one.problem else f"{one.compiled} of {one.kernels}"


def rest_of(one: Coverage) -> str:
    """Return which kernels have no code and why, "nothing" where all have."""
    reasons = "; ".join(
        f"{reason}: {shorten(nodes, 2)}" for reason, nodes in one.refused.items()
    )
    return one.problem or reasons or "nothing"


def row(one: Coverage) -> str:
    """Return a line of the table."""
    rest = rest_of(one)
    apart = f", torch runs {', '.join(one.externals)}" if one.externals else ""
    state = "whole" if rest == "nothing" else rest
    return f"{one.target} {one.dtype} {one.case}: {count_of(one)}{apart} | {state}"


def totals(found: Sequence[Coverage]) -> dict[str, str]:
    """Return for each target and type: whole cases, kernels, reasons."""
    lines = {}
    for dtype in DTYPES:
        for target in TARGETS:
            chosen = [x for x in found if (x.target, x.dtype) == (target, dtype)]
            if chosen:
                lines[_column(target, dtype)] = _total(chosen)
    return lines


def _total(chosen: Sequence[Coverage]) -> str:
    whole = sum(one.compiled == one.kernels and not one.problem for one in chosen)
    compiled = sum(one.compiled for one in chosen)
    kernels = sum(one.kernels for one in chosen)
    reasons: Counter[str] = Counter()
    for one in chosen:
        for reason, kernels_without in one.refused.items():
            reasons[reason] += len(kernels_without)
    why = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    return (
        f"{whole} of {len(chosen)} cases whole, {compiled} of {kernels} kernels; "
        f"{why or 'nothing refused'}"
    )


@dataclass
class Run:
    """A run that counts what a report has not yet.

    Attributes:
        output: The report.
        seconds: How long one plan and its kernels may take.
        found: What was counted.
    """

    output: Path
    seconds: float
    found: list[Coverage] = field(default_factory=list)

    def resume(self) -> None:
        """Begin with what the report has, if there is one."""
        if self.output.exists():
            rows = read_results(self.output)
            self.found = [Coverage(**one) for row in rows for one in row["found"]]

    def count(
        self, case: str, dtype: str, plans: Sequence[Sequence[Target]]
    ) -> Iterable[Coverage]:
        """Yield what becomes of a case for targets, each a plan, and report it."""
        done = {(x.case, x.dtype, x.target) for x in self.found}
        missing = [
            chosen
            for one in plans
            if (chosen := [x for x in one if (case, dtype, str(x)) not in done])
        ]
        if not missing:
            return
        graph = captured(case, DTYPES[dtype]).graph
        for chosen in missing:
            counted = in_child(measure, (graph, chosen), self.seconds)
            if isinstance(counted, str):
                counted = [Coverage("", str(x), problem=counted) for x in chosen]
            for one in counted:
                one.case, one.dtype = case, dtype
                one.commit = provenance()["commit"]
            self.found += counted
            write_report(
                self.output, 1, reported(self.found), totals=totals(self.found)
            )
            yield from counted


def planned_together(targets: Iterable[str], own: bool) -> list[list[Target]]:
    """Return targets in groups: each group is planned for one device."""
    groups: dict[str, list[Target]] = {}
    for name in targets:
        together = groups.setdefault(name if own else name.partition(":")[0], [])
        device = together[0].reference if together else ""
        together.append(parse_target(f"{name}@{device}" if device else name))
    return list(groups.values())


def main() -> int:
    """Run the cases that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="*", choices=_CASES, default=_CASES)
    parser.add_argument("--targets", nargs="*", choices=TARGETS, default=TARGETS)
    parser.add_argument("--dtypes", nargs="*", choices=list(DTYPES), default=["f32"])
    parser.add_argument("--own-plans", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("-o", "--output", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    torch.set_num_threads(1)  # what threads hold does not come along with a fork
    run = Run(options.output, options.seconds)
    if options.resume:
        run.resume()
    plans = planned_together(options.targets, options.own_plans)
    for case, dtype in in_turns(options.cases, options.dtypes):
        for one in run.count(case, dtype, plans):
            print(row(one), flush=True)
    for column, total in totals(run.found).items():
        print(f"{column}: {total}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
