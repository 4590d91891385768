"""Front ends and back ends, each with each: time of a call.

    python benchmarks/paper_figures/front_ends.py [--cases NAME ...] [--layers N]
        [--rounds N] [--threads N] [-o FILE]

MagPy, Fig. 15. `torch.compile` is TorchDynamo with Inductor and `magweld` our front end
with our compiler; `dynamo+` and `magweld+` name the other pairs, `+graph` runs captured
graphs by torch. All pairs of a model run in turns in a process of its own, and a result
that differs from eager's is an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from magpy_models import cases, time_models
from timing import interleaved, seconds_of
from torch import nn
from whole_models import difference

from magweld import frontend
from magweld.dynamo import dynamo_backend

TOLERANCE = 1e-3
LAYERS = 4
Wrap = Callable[[nn.Module], Any]


def _dynamo(backend: Any, model: nn.Module) -> Any:
    return torch.compile(model, backend=backend, dynamic=False)


PAIRS: dict[str, Wrap] = {
    "eager": lambda model: model,
    "dynamo+graph": partial(_dynamo, "eager"),
    "torch.compile": partial(_dynamo, "inductor"),
    "dynamo+magweld": partial(_dynamo, dynamo_backend),
    "magweld+graph": partial(frontend.trace, backend="eager"),
    "magweld+inductor": partial(frontend.trace, backend="inductor"),
    "magweld": partial(frontend.trace, compile="now"),
}


@torch.no_grad()
def run_case(name: str, layers: int, rounds: int, threads: int) -> dict[str, Any]:
    """Measure all pairs of one model."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    model, inputs = cases(layers)[name].make(1)
    expected = model(*inputs)
    calls: dict[str, Callable[[], Any]] = {}
    absent: dict[str, str] = {}
    first: dict[str, float] = {}
    for pair, wrap in PAIRS.items():
        # What goes wrong in a pair is its row, whatever it is.
        try:
            call = partial(wrap(model), *inputs)
            first[pair] = seconds_of(call)
            error = difference(call(), expected)
        except Exception as reason:
            absent[pair] = f"{type(reason).__name__}: {reason}".splitlines()[0][:200]
            continue
        if not error <= TOLERANCE:
            absent[pair] = f"wrong result: differs by {error:.1e}"
            continue
        calls[pair] = call
    times = interleaved(calls, rounds)
    return {
        "times": {pair: t.as_dict() for pair, t in times.items()},
        "first_call_s": first,
        "absent": absent,
    }


def main() -> int:
    """Run the chosen models; return 1 if a pair has no times."""
    return time_models(__doc__, 10, __file__, run_case, LAYERS)


if __name__ == "__main__":
    raise SystemExit(main())
