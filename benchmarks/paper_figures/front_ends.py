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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from magpy_models import cases, time_models, time_peers
from torch import nn

from magweld import frontend
from magweld.dynamo import dynamo_backend

LAYERS = 4
Wrap = Callable[[nn.Module], Any]


def _call(wrap: Wrap, model: nn.Module, inputs: Sequence[Any]) -> Callable[[], Any]:
    return partial(wrap(model), *inputs)


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
    make = {pair: partial(_call, wrap, model, inputs) for pair, wrap in PAIRS.items()}
    return time_peers(make, expected, rounds)


def main() -> int:
    """Run the chosen models; return 1 if a pair has no times."""
    return time_models(__doc__, 10, __file__, run_case, LAYERS)


if __name__ == "__main__":
    raise SystemExit(main())
