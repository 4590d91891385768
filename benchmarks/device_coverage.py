"""Which kernels compile for GPUs, and which operators are refused and why.

    python benchmarks/device_coverage.py [--cases NAME ...] [--targets T ...] [-o FILE]

The small subgraphs and models of `device_cases.py` are lowered for each target, no GPU
being there. Every kernel is compiled on its own: the table says how many of them have
code, and names for the others the reason. Operators without a lowering to linalg run
through torch on every target, and are counted apart. Each case runs in a process of
its own: what aborts in LLVM is a row of the table.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from device_cases import MODELS, SUBGRAPHS, captured
from reporting import report_file, write_report

from magweld.bindings import ir
from magweld.columns import shorten
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.device_compiler import compile_kernel, nodes_in
from magweld.diagnostics import MagweldError
from magweld.passes.gpu.structure import kernels_of
from magweld.targets import parse_target

TARGETS = ("nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx90a", "rocdl:gfx942")
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


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
        seconds: Of the compilation.
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


def measure(case: str, target: str, dtype: str) -> Coverage:
    """Compile the kernels of a case, each on its own."""
    found = Coverage(case, target, dtype)
    start = time.monotonic()
    graph = captured(case, DTYPES[dtype]).graph
    found.externals = sorted(str(x.node.target) for x in graph.externals.values())
    chosen = parse_target(target)
    options = CompileOptions(device=chosen.reference, library="never")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(graph.text)
        lower_to_tiles(module, options, has_async_copies=chosen.has_async_copies)
        for function in kernels_of(module.operation):
            found.kernels += 1
            try:
                compile_kernel(function, chosen)
            except (MagweldError, ir.MLIRError) as error:
                found.refused.setdefault(reason_of(error), []).append(
                    " ".join(nodes_in(function))
                )
            else:
                found.compiled += 1
    found.seconds = time.monotonic() - start
    return found


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


def reported(one: Coverage) -> dict[str, Any]:
    """Return a row of the report."""
    return {
        "case": f"{one.case} {one.target} {one.dtype}",
        "cells": {
            "kernels": one.kernels,
            "with code": one.compiled,
            "without code": rest_of(one),
            "through torch": ", ".join(sorted(set(one.externals))) or "nothing",
            "seconds": round(one.seconds, 1),
        },
    }


def rest_of(one: Coverage) -> str:
    """Return which kernels have no code and why, "nothing" where all have."""
    reasons = "; ".join(
        f"{reason}: {shorten(nodes, 2)}" for reason, nodes in one.refused.items()
    )
    return one.problem or reasons or "nothing"


def row(one: Coverage) -> str:
    """Return a line of the table."""
    rest = rest_of(one)
    apart = f", torch runs {', '.join(sorted(set(one.externals)))}"
    apart = apart if one.externals else ""
    counts = f"{one.compiled} of {one.kernels}"
    state = "whole" if rest == "nothing" else rest
    return f"{one.target} {one.dtype} {one.case}: {counts}{apart} | {state}"


def totals(found: list[Coverage]) -> list[str]:
    """Return a line for each target and type: whole cases, kernels, reasons."""
    lines = []
    for target, dtype in dict.fromkeys((one.target, one.dtype) for one in found):
        chosen = [one for one in found if (one.target, one.dtype) == (target, dtype)]
        whole = sum(one.compiled == one.kernels and not one.problem for one in chosen)
        compiled = sum(one.compiled for one in chosen)
        kernels = sum(one.kernels for one in chosen)
        reasons = Counter(
            {
                reason: sum(len(one.refused.get(reason, ())) for one in chosen)
                for reason in dict.fromkeys(r for one in chosen for r in one.refused)
            }
        )
        why = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
        lines.append(
            f"{target} {dtype}: {whole} of {len(chosen)} cases whole, "
            f"{compiled} of {kernels} kernels; {why or 'nothing refused'}"
        )
    return lines


def main() -> int:
    """Run the cases that the command line names."""
    names = [*SUBGRAPHS, *MODELS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="*", choices=names, default=names)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--dtypes", nargs="*", choices=list(DTYPES), default=["f32"])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("-o", "--output", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    torch.set_num_threads(1)  # what threads hold does not come along with a fork
    found = []
    for target in options.targets:
        for dtype in options.dtypes:
            for case in options.cases:
                one = in_child(measure, (case, target, dtype), options.seconds)
                if isinstance(one, str):
                    one = Coverage(case, target, dtype, problem=one)
                found.append(one)
                print(row(found[-1]), flush=True)
    print("\n".join(totals(found)))
    write_report(options.output, 1, [reported(one) for one in found])
    return 0


if __name__ == "__main__":
    sys.exit(main())
