"""21 subgraphs: eager, torch.compile, and magweld with less and more fusion.

    python benchmarks/subgraphs.py [--cases NAME ...] [--rounds N]
        [--dtype f32|bf16|f16] [-o FILE]

All peers of a case run in turns in this process; ratios are of least times, since other
processes only ever add time. `unfused` is every operator in a kernel of its own,
`registers` connects what melts element by element, `magweld` is the whole schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from reporting import DTYPES, benchmark_options, reported
from rich.console import Console
from rich.table import Table
from subgraph_cases import CASES, Case
from timing import interleaved, seconds_of
from torch import Tensor

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions

OURS = {
    "magweld": CompileOptions(),
    "registers": CompileOptions(fusion="registers"),
    "unfused": CompileOptions(fusion="none"),
}


def traced(case: Case, options: CompileOptions) -> Callable[..., Any]:
    """Return a case, compiled by magweld as `options` say."""
    return frontend.trace(
        case.function, backend=partial(compile_graph, options=options)
    )


def peers(case: Case, chosen: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """Return the functions to compare, by name."""
    made: dict[str, Callable[..., Any]] = {"eager": case.function}
    if "torch.compile" in chosen:
        made["torch.compile"] = torch.compile(case.function, dynamic=False)
    if "max-autotune" in chosen:
        made["max-autotune"] = torch.compile(
            case.function, dynamic=False, mode="max-autotune-no-cudagraphs"
        )
    return made | {name: traced(case, options) for name, options in OURS.items()}


def difference(got: Any, expected: Any) -> float:
    """Return the largest difference, relative to the largest expected value."""
    pairs = zip(_tensors(got), _tensors(expected), strict=True)
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def _tensors(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def run_case(
    case: Case, rounds: int, chosen: Sequence[str], dtype: torch.dtype
) -> dict[str, Any]:
    """Measure one case with floats of a type."""
    arguments = [
        argument.to(dtype) if argument.is_floating_point() else argument
        for argument in case.arguments()
    ]
    functions = peers(case, chosen)
    calls = {
        name: lambda function=function: function(*arguments)  # type: ignore[misc]
        for name, function in functions.items()
    }
    first = {name: seconds_of(call) for name, call in calls.items()}
    expected = case.function(*arguments)
    times = interleaved(calls, rounds)
    ours = times["magweld"].min_ms
    others = [t.min_ms for name, t in times.items() if name not in OURS]
    return {
        "case": case.name,
        "exercises": case.exercises,
        "first_call_s": first,
        "times": {name: t.as_dict() for name, t in times.items()},
        "difference": {n: difference(calls[n](), expected) for n in OURS},
        "stats": functions["magweld"].stats(),  # type: ignore[attr-defined]
        "over_best_peer": min(others) / ours,
        "over_torch_compile": times[chosen[0]].min_ms / ours if chosen else None,
    }


def show(results: list[dict[str, Any]]) -> None:
    """Print the results as a table, geometric means last."""
    names = list(results[0]["times"])
    table = Table("case", *(f"{name} ms" for name in names), "x best", "difference")
    for result in results:
        table.add_row(
            result["case"],
            *(f"{result['times'][name]['min_ms']:.2f}" for name in names),
            f"{result['over_best_peer']:.2f}",
            f"{max(result['difference'].values()):.0e}",
        )
    ratios = [
        math.exp(
            sum(math.log(r["times"][n]["min_ms"] / _ours(r)) for r in results)
            / len(results)
        )
        for n in names
    ]
    best = math.exp(sum(math.log(r["over_best_peer"]) for r in results) / len(results))
    mean = (f"{ratio:.2f}" for ratio in ratios)
    table.add_row("x magweld, geometric mean", *mean, f"{best:.2f}", "")
    Console(width=140).print(table)


def _ours(result: dict[str, Any]) -> float:
    return float(result["times"]["magweld"]["min_ms"])


def main() -> None:
    """Run the chosen cases."""
    by_name = {case.name: case for case in CASES}
    options = benchmark_options(__doc__, by_name, 30, __file__, dtypes=True)
    chosen = [] if options.no_torch_compile else ["torch.compile"]
    dtype = DTYPES[options.dtype]
    with torch.no_grad():
        runs = (
            run_case(by_name[name], options.rounds, chosen, dtype)
            for name in options.cases
        )
        show(reported(runs, options, show, dtype=options.dtype))


if __name__ == "__main__":
    main()
