"""Where the time of first calls and of hits goes.

    python benchmarks/paper_figures/breakdown.py [--cases NAME ...] [--layers N]
        [--rounds N] [--threads N] [-o FILE]

MagPy, Fig. 16. `monitor` is a first call whose graph runs by torch, less an eager call;
beside it stands what it is with the compilation, by Inductor and by our compiler,
without caches. `guard` is a hit whose graph is a constant: guards and what is replayed;
`hit` is one of our code. Each model has a process of its own.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from magpy_models import cases
from overhead import constant_backend
from reporting import benchmark_options, reported, show_cells
from timing import interleaved, seconds_of
from whole_models import alone

from magweld import frontend

LAYERS = 4


@torch.no_grad()
def run_case(name: str, layers: int, rounds: int, threads: int) -> dict[str, Any]:
    """Return the columns of one model."""
    os.environ["MAGWELD_CACHE"] = "0"
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    model, inputs = cases(layers)[name].make(1)
    # The first recording of a process imports; another program pays for that.
    frontend.trace(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
    eager = min(seconds_of(partial(model, *inputs)) for _ in range(3))
    recorded = seconds_of(partial(frontend.trace(model, backend="eager"), *inputs))
    compiled = {}
    for backend in ("inductor", "magweld"):
        moment = "now" if backend == "magweld" else None
        traced = frontend.trace(model, backend=backend, compile=moment)
        traced(*inputs)
        compiled[backend] = traced.stats()["compile_seconds"]
    guarded = frontend.trace(model, backend=constant_backend)
    calls: dict[str, Callable[[], Any]] = {
        "guard": partial(guarded, *inputs),
        "hit": partial(traced, *inputs),
        "eager": partial(model, *inputs),
    }
    times = {n: t.min_ms for n, t in interleaved(calls, rounds).items()}
    monitor = recorded - eager
    return {
        "monitor s": monitor,
        "monitor and inductor s": monitor + compiled["inductor"],
        "monitor and magweld s": monitor + compiled["magweld"],
        "guard ms": times["guard"],
        "hit ms": times["hit"],
        "eager ms": times["eager"],
    }


def main() -> int:
    """Run the chosen models; return 1 if a process ended early."""
    options = benchmark_options(
        __doc__, cases(), 20, __file__, numbers={"layers": LAYERS}
    )
    settings = (options.layers, options.rounds, options.threads)
    runs = (
        {"case": name, "cells": alone(run_case, name, *settings)}
        for name in options.cases
    )
    results = reported(runs, options, show_cells, layers=options.layers)
    show_cells(results)
    return int(any("died" in result["cells"] for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
