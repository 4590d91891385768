"""Time to the first result: cold, cold with tuning, from the cache.

    python benchmarks/compile_time.py [--cases NAME ...] [-o FILE]

Each figure is the first call in a process of its own, imports and the making of the
model excluded: recording, compiling, one run. `compiled` and `tuned` begin with an
empty cache; `... again` is another process with the cache of the one before, in which
the compiler has nothing to do; `plans` has the plans of `tuned`, and no programs. `ms`
is the least time of later calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from reporting import benchmark_options, reported
from rich.console import Console
from rich.table import Table
from timing import interleaved, seconds_of

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent / "examples"))

# Layers of a BERT of the base size, batch 1, 128 tokens.
CASES = {"bert-base-1x128": 12, "bert-1x128-2-layers": 2}
# Name of a figure -> whether it tunes, and what it removes of the cache before.
RUNS = {
    "compiled": ("0", "*"),
    "compiled again": ("0", None),
    "tuned": ("30", "*"),
    "tuned again": ("30", None),
    "plans": ("30", "programs-*"),
}


def encoder(layers: int) -> tuple[Any, torch.Tensor]:
    """Return an encoder with random weights, and tokens."""
    import torchvision_schemas

    library = torchvision_schemas.declare()
    from transformers import BertConfig, BertModel

    del library
    torch.manual_seed(0)
    model = BertModel(BertConfig(num_hidden_layers=layers)).eval()
    return model, torch.randint(0, 30000, (1, 128))


def first_call(case: str, rounds: int) -> dict[str, Any]:
    """Time the first call of a model in this process, then later ones."""
    from magweld import frontend
    from magweld.api import compile_service

    model, tokens = encoder(CASES[case])
    traced = frontend.trace(model, compile="now")
    with torch.no_grad():
        eager = model(tokens)
        service = compile_service()
        seconds = seconds_of(lambda: traced(tokens))
        calls = {"eager": lambda: model(tokens), "magweld": lambda: traced(tokens)}
        times = interleaved(calls, rounds)
        got = traced(tokens)
    difference = (got[0] - eager[0]).abs().max() / eager[0].abs().max()
    return {
        "seconds": seconds,
        "compiler_runs": service.statistics.misses,
        "times": {name: t.as_dict() for name, t in times.items()},
        "difference": float(difference),
        "stats": traced.stats(),
    }


def remove(folder: Path, pattern: str) -> None:
    """Remove what matches of the cache."""
    for path in folder.glob(pattern):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()


def run_case(case: str, rounds: int, threads: int) -> dict[str, Any]:
    """Take all figures of a case."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (tune, removed) in RUNS.items():
            if removed is not None:
                remove(Path(folder), removed)
            settings = {"MAGWELD_CACHE_DIR": folder, "MAGWELD_TUNE": tune}
            command = [sys.executable, str(HERE), "--child", case]
            command += [str(rounds), str(threads)]
            start = time.perf_counter()
            answer = subprocess.run(
                command,
                env=os.environ | settings,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            found[name] = json.loads(answer.stdout.splitlines()[-1])
            found[name]["process_seconds"] = time.perf_counter() - start
    cells = {f"{name} s": run["seconds"] for name, run in found.items()}
    cells["tuned ms"] = found["tuned"]["times"]["magweld"]["min_ms"]
    return {"case": case, "runs": found, "cells": cells}


def show(results: list[dict[str, Any]]) -> None:
    """Print the results as a table."""
    table = Table(
        *("case", "run", "first call s", "compiler runs", "ms", "eager ms"),
        "difference",
    )
    for result in results:
        for name, run in result["runs"].items():
            table.add_row(
                result["case"],
                name,
                f"{run['seconds']:.1f}",
                f"{run['compiler_runs']}",
                f"{run['times']['magweld']['min_ms']:.1f}",
                f"{run['times']['eager']['min_ms']:.1f}",
                f"{run['difference']:.0e}",
            )
    Console().print(table)


def main() -> None:
    """Run the chosen cases, or be the process of one run."""
    if sys.argv[1:2] == ["--child"]:
        case, rounds, threads = sys.argv[2:]
        torch.set_num_threads(int(threads))
        print(json.dumps(first_call(case, int(rounds))))
        return
    options = benchmark_options(__doc__, CASES, 10, __file__)
    runs = (run_case(case, options.rounds, options.threads) for case in options.cases)
    show(reported(runs, options, show))


if __name__ == "__main__":
    main()
