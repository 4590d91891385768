"""Models whose batch changes with every call: time of a pass over all sizes.

    python benchmarks/paper_figures/changing_sizes.py [--cases NAME ...] [--layers N]
        [--rounds N] [--threads N] [-o FILE]

MagPy, Fig. 17. `torch.compile` is told that sizes change (dynamic=True); ours finds it
out. Three passes come before those that are timed, and compiling is waited for. Each
model has a process of its own, and a result that differs from eager's is an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from magpy_models import TOLERANCE, cases, time_models
from timing import interleaved, seconds_of
from whole_models import difference

from magweld import frontend

LAYERS = 4
BATCHES = (2, 3, 4, 5)
PASSES = 3


@torch.no_grad()
def run_case(name: str, layers: int, rounds: int, threads: int) -> dict[str, Any]:
    """Measure one model.

    Raises:
        ValueError: A result differs from eager's.
    """
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    case = cases(layers)[name]
    model, _ = case.make(2)
    stream = [case.inputs(batch) for batch in BATCHES]
    traced = frontend.trace(model)
    peers: dict[str, Callable[..., Any]] = {
        "eager": model,
        "torch.compile": torch.compile(model, dynamic=True),
        "magweld": traced,
    }

    def over(call: Callable[..., Any]) -> list[Any]:
        return [call(*inputs) for inputs in stream]

    expected = over(model)
    first: dict[str, float] = {}
    for peer, call in peers.items():
        first[peer] = seconds_of(lambda call=call: over(call))  # type: ignore[misc]
        for _ in range(PASSES - 1):
            traced.wait()
            over(call)
        traced.wait()
        for got, wanted in zip(over(call), expected, strict=True):
            if difference(got, wanted) > TOLERANCE:
                raise ValueError(f"{name}: wrong result of {peer}")
    passes = {p: lambda call=call: over(call) for p, call in peers.items()}  # type: ignore[misc]
    times = interleaved(passes, rounds)
    return {
        "times": {peer: t.as_dict() for peer, t in times.items()},
        "first_pass_s": first,
        "stats": traced.stats(),
    }


def main() -> int:
    """Run the chosen models; return 1 if a process ended early."""
    return time_models(__doc__, 7, __file__, run_case, LAYERS)


if __name__ == "__main__":
    raise SystemExit(main())
