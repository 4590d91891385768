"""Owns `magweld bench`: time per call of a model, eager and compiled."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from magweld.columns import columns
from magweld.frontend import trace
from magweld.tools.cli.program import (
    CommandLineError,
    example_inputs,
    load_model,
    require_runs,
)


def run(options: argparse.Namespace) -> None:
    """Time both in turns and print minimum, median and the ratio of the medians."""
    if options.rounds < 1:
        raise CommandLineError(f"expected at least one round, got {options.rounds}")
    model = load_model(options.model)
    inputs = example_inputs(options.inputs)
    require_runs(model, inputs)
    traced = trace(model, tune=options.tune, compile="now")
    with torch.no_grad():
        start = time.perf_counter()
        traced(*inputs)
        first = time.perf_counter() - start
        calls = {"eager": lambda: model(*inputs), "magweld": lambda: traced(*inputs)}
        times = in_turns(calls, options.rounds)
    found = {name: _summary(values) for name, values in times.items()}
    result = {
        **found,
        "first_call_s": first,
        "speed_up": found["eager"]["median_ms"] / found["magweld"]["median_ms"],
        **{key: traced.stats()[key] for key in ("hits", "records", "breaks")},
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(result, indent=2) if options.json else _text(result))


def in_turns(
    calls: Mapping[str, Callable[[], Any]], rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of some rounds of calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    # In turns: whatever else the machine does, it does to both.
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return times


def _summary(seconds: list[float]) -> dict[str, float]:
    return {
        "min_ms": min(seconds) * 1e3,
        "median_ms": statistics.median(seconds) * 1e3,
    }


def _text(result: dict[str, Any]) -> str:
    rows = [("", "min ms", "median ms")]
    rows += [
        (name, f"{result[name]['min_ms']:.3f}", f"{result[name]['median_ms']:.3f}")
        for name in ("eager", "magweld")
    ]
    return (
        f"{columns(rows)}\n"
        f"speed-up {result['speed_up']:.2f} on {result['threads']} threads; "
        f"{result['records']} records, {result['breaks']} breaks, "
        f"first call {result['first_call_s']:.2f} s"
    )
