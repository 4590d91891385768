"""Training steps of a ranking model with and without horizontal fusion.

    python benchmarks/paper_figures/rule_training.py [--cases NAME ...] [--rounds N]
        [--threads N] [-o FILE]

The post on atomic rules: what they gain a training step on top of torch.compile. A case
is a number of features, each with a table, a tower of linear, norm and tanh, and a part
of what the head reads. `apart` is magweld with a launch for each kernel; `group-batch`
is torch.compile with its group-batch and split-cat fusions, which are off by default.
Each peer trains a copy of its own; a loss that differs from eager's is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import torch
from horizontal import group_batched
from horizontal_models import WIDTH
from reporting import benchmark_options, write_report
from timing import interleaved, seconds_of
from torch import Tensor, nn
from training import Peer, peer

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions

ROWS = 256
IDS = 8
WORDS = 1000
TOLERANCE = 1e-4
CASES = {f"ranking-{count}": count for count in (8, 32, 64)}


def tower() -> nn.Module:
    """Return what is done with the sum of a feature's rows."""
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Tanh())


class Ranking(nn.Module):
    """Features with tables and towers, joined into a score."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(WORDS, WIDTH, mode="sum") for _ in range(features)
        )
        self.towers = nn.ModuleList(tower() for _ in range(features))
        self.head = nn.Sequential(
            nn.Linear(features * WIDTH, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, **ids: Tensor) -> Tensor:
        """Return [rows, 1] for ids of [rows, IDS] of each feature."""
        found = [t(x) for t, x in zip(self.tables, ids.values(), strict=True)]
        done = [tower(x) for tower, x in zip(self.towers, found, strict=True)]
        score: Tensor = self.head(torch.cat(done, -1))
        return score


class Halves:
    """Our compiler as a backend that gets forward and backward graphs."""

    differentiates = False

    def __init__(self, batch: bool) -> None:
        self.options = CompileOptions(batch=batch)

    def __call__(self, gm: torch.fx.GraphModule, inputs: Any) -> Any:
        """Compile one half."""
        return compile_graph(gm, inputs, options=self.options)


def run_case(name: str, rounds: int, with_torch: bool) -> dict[str, Any]:
    """Measure a number of features.

    Raises:
        ValueError: A loss differs from eager's.
    """
    torch._dynamo.reset()
    torch.manual_seed(0)
    features = CASES[name]
    model = Ranking(features).train()
    inputs = {
        f"feature_{n}": torch.randint(0, WORDS, (ROWS, IDS)) for n in range(features)
    }
    wraps: dict[str, Callable[[nn.Module], Any]] = {"eager": lambda module: module}
    if with_torch:
        compiled = partial(torch.compile, dynamic=False)
        wraps |= {"torch.compile": compiled, "group-batch": group_batched}
    wraps |= {
        "apart": partial(frontend.trace, backend=Halves(False)),
        "magweld": partial(frontend.trace, backend=Halves(True)),
    }
    peers: dict[str, Peer] = {}
    first: dict[str, float] = {}
    losses: dict[str, float] = {}
    for one, wrap in wraps.items():
        peers[one] = peer(model, wrap, inputs)
        step = peers[one].step
        first[one] = seconds_of(step)
        losses[one] = step()
        if abs(losses[one] / losses["eager"] - 1) > TOLERANCE:
            raise ValueError(f"{name}: loss {losses[one]} of {one}: {losses['eager']}")
    times = interleaved({one: p.step for one, p in peers.items()}, rounds)
    return {
        "case": name,
        "times": {one: t.as_dict() for one, t in times.items()},
        "first_step_s": first,
        "stats": peers["magweld"].call.stats(),
    }


def main() -> None:
    """Run the chosen cases."""
    options = benchmark_options(__doc__, CASES, 30, __file__)
    results: list[dict[str, Any]] = []
    for name in options.cases:
        result = run_case(name, options.rounds, not options.no_torch_compile)
        results.append(result)
        for one, times in result["times"].items():
            print(f"{name} {one}: {times['min_ms']:.2f} ms a step", flush=True)
        write_report(options.o, options.threads, results)


if __name__ == "__main__":
    main()
