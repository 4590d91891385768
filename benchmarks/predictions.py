"""Predicted against measured times of the kernels of the subgraphs.

    python benchmarks/predictions.py [--cases NAME ...] [--rounds N] [-o FILE]

Each kernel is timed alone, with the threads that the device is described with. What it
reads and writes is in the caches that hold it: a prediction has it in main memory.
"""

from __future__ import annotations

from typing import Any

import torch
from reporting import benchmark_options, reported
from rich.console import Console
from rich.table import Table
from traffic import NAMES, compiled

# Of those that are most wrong.
SHOWN = 10


def run_case(name: str, rounds: int) -> list[dict[str, Any]]:
    """Return predicted and measured seconds of each kernel of a case."""
    graph, inputs = compiled(NAMES[name])
    graph.measure(inputs, rounds)
    steps = [step for found in graph.report()["graphs"] for step in found["steps"]]
    return [
        {
            "case": name,
            "kernel": step["name"],
            "roots": [operator["root"] for operator in step["operators"]],
            "tile": step["plan"]["tile"],
            "shares": step["plan"]["predicted_shares"],
            "predicted": step["plan"]["predicted_seconds"],
            "measured": step["measured_seconds"],
        }
        for step in steps
        if step["kind"] == "generated" and "predicted_seconds" in step["plan"]
    ]


def error(result: dict[str, Any]) -> float:
    """Return by which factor a prediction is wrong, in whatever direction."""
    ratio = float(result["measured"] / result["predicted"])
    return max(ratio, 1 / ratio)


def show(results: list[dict[str, Any]]) -> None:
    """Print kernels with their times, and what the prediction is made of."""
    table = Table("case", "kernel", "tile", "predicted ms", "measured ms", "ratio")
    table.add_column("of it, ms")
    for result in results:
        shares = sorted(result["shares"].items(), key=lambda item: -item[1])
        table.add_row(
            result["case"],
            result["kernel"],
            "x".join(map(str, result["tile"])),
            f"{result['predicted'] * 1e3:.3f}",
            f"{result['measured'] * 1e3:.3f}",
            f"{result['measured'] / result['predicted']:.2f}",
            ", ".join(f"{name} {seconds * 1e3:.3f}" for name, seconds in shares),
        )
    Console(width=150).print(table)


def main() -> None:
    """Measure the chosen cases."""
    options = benchmark_options(__doc__, NAMES, 30, __file__)
    with torch.no_grad():
        runs = (
            result
            for name in options.cases
            for result in run_case(name, options.rounds)
        )
        results = reported(runs, options)
    show(results)
    print(f"the {SHOWN} that are most wrong:")
    show(sorted(results, key=error, reverse=True)[:SHOWN])


if __name__ == "__main__":
    main()
