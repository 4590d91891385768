"""Time per training step: eager, torch.compile and magweld side by side.

A step is forward, loss, backward and an optimizer's step, each peer on a model of its
own with equal weights. Steps of the peers are interleaved; ratios are of least times.
Before they are timed, magweld has chosen between its code and torch (`tier`). Beside
the times stand the difference of the losses from eager's and how much of both halves is
generated code. It prints a table and writes JSON.
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import models
from horizontal_models import WIDTH, Dhen
from reporting import benchmark_options, reported

from magweld import frontend
from magweld.tiers import tier_of
from magweld.training.step import TrainingGraph

# Steps before times count: magweld times its code and torch in turns.
SETTLING = 24
SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank. "


def sentence_case() -> tuple[nn.Module, dict[str, Any]]:
    """MiniLM-L6 on 8 sentences of 64 tokens, padding included."""
    model = models.load_sentence_model()
    texts = [SENTENCE * (1 + i % 6) for i in range(8)]
    return model.encoder.train().requires_grad_(True), model.tokens(texts, 64)


def image_case(name: str, batch: int) -> tuple[nn.Module, dict[str, Any]]:
    """An image model on noise."""
    model = models.load_image_model(name).train().requires_grad_(True)
    return model, {"x": torch.randn(batch, 3, 224, 224)}


def ensemble_case() -> tuple[nn.Module, dict[str, Any]]:
    """Three layers of ensembles of interactions between 16 features of 128 rows."""
    return Dhen().train(), {"x": torch.randn(128, 16 * WIDTH)}


CASES: dict[str, Callable[[], tuple[nn.Module, dict[str, Any]]]] = {
    "minilm-8x64": sentence_case,
    "resnet18-4": lambda: image_case("resnet18", 4),
    "convnext_tiny-2": lambda: image_case("convnext_tiny", 2),
    "dhen-128": ensemble_case,
}


@dataclass
class Peer:
    """One way to run a model, with the model's own optimizer."""

    call: Callable[..., Any]
    optimizer: torch.optim.Optimizer
    inputs: dict[str, Any]

    def step(self) -> float:
        """Train one step; return the loss."""
        torch.manual_seed(0)
        result = self.call(**self.inputs)
        scores = result if isinstance(result, Tensor) else result[0]
        loss = scores.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss)


def peer(
    model: nn.Module, wrap: Callable[[nn.Module], Any], inputs: dict[str, Any]
) -> Peer:
    """Return a peer on a copy of a model."""
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(twin.parameters(), 1e-4)
    return Peer(wrap(twin), optimizer, inputs)


def timed(step: Callable[[], float]) -> tuple[float, float]:
    """Return the seconds of a step and its loss."""
    start = time.perf_counter()
    loss = step()
    return time.perf_counter() - start, loss


def tier(records: Sequence[frontend.Record]) -> str:
    """Return what runs most steps: compiled code, or the graph through torch."""
    chosen = [tier_of(record.compiled) for record in records]
    through_torch = any(one is None or one.runs_through_torch for one in chosen)
    return "torch" if through_torch else "compiled"


def generated(record: frontend.Record) -> dict[str, Any]:
    """Return how many operators of each half are generated, and which are not."""
    if not isinstance(record.compiled, TrainingGraph):
        return {}
    stages = [
        half for one in record.compiled.backward for half in one.compiled.values()
    ]
    halves = {"forward": [record.compiled.forward], "backward": stages}
    return {name: shares_of(graphs) for name, graphs in halves.items()}


def shares_of(graphs: list[Any]) -> dict[str, Any] | None:
    """Return the same of the graphs of one half, None where one is not compiled."""
    tiers = [tier_of(graph) for graph in graphs]
    made = [
        tier.compiled if tier else graph
        for tier, graph in zip(tiers, graphs, strict=True)
    ]
    if not made or not all(hasattr(graph, "imported") for graph in made):
        return None
    imported = [graph.imported for graph in made]
    nodes = [node for one in imported for node in one.aten.graph.nodes]
    externals = [item for one in imported for item in one.externals.values()]
    return {
        "operators": sum(node.op == "call_function" for node in nodes),
        "through_torch": len(externals),
        "kinds": sorted({str(item.node.target) for item in externals}),
    }


def run_case(name: str, rounds: int, names: list[str]) -> dict[str, Any]:
    """Measure one model; the ratio is the peer's median over magweld's."""
    model, inputs = CASES[name]()
    wraps: dict[str, Callable[[nn.Module], Any]] = {
        "eager": lambda m: m,
        "magweld": partial(frontend.trace, compile="now"),
        "torch.compile": torch.compile,
    }
    peers = {n: peer(model, wraps[n], inputs) for n in names}
    # The first step captures, the second compiles the backward half.
    first = {n: sum(timed(p.step)[0] for _ in range(2)) for n, p in peers.items()}
    for _ in range(SETTLING):
        for p in peers.values():
            p.step()
    times: dict[str, list[float]] = {n: [] for n in peers}
    losses: dict[str, float] = {}
    for _ in range(rounds):
        for n, p in peers.items():
            seconds, losses[n] = timed(p.step)
            times[n].append(seconds * 1e3)
    traced = peers["magweld"].call
    ours = min(times["magweld"])
    return {
        "model": name,
        "times": {
            n: {
                "median_ms": statistics.median(t),
                "min_ms": min(t),
                "first_steps_s": first[n],
                "ratio_to_magweld": min(t) / ours,
                "loss_difference": abs(losses[n] / losses["eager"] - 1),
            }
            for n, t in times.items()
        },
        "stats": traced.stats(),
        "breaks": [str(b) for r in traced.records for b in r.breaks],
        "tier": tier(traced.records),
        "halves": generated(traced.records[0]) if traced.records else None,
    }


def show(results: list[dict[str, Any]]) -> None:
    """Print the results as a table."""
    columns = "model,peer,median ms,min ms,x magweld,first 2 steps s,loss difference"
    table = Table(*columns.split(","))
    for result in results:
        for n, figures in result["times"].items():
            table.add_row(
                result["model"],
                n,
                f"{figures['median_ms']:.1f}",
                f"{figures['min_ms']:.1f}",
                f"{figures['ratio_to_magweld']:.2f}",
                f"{figures['first_steps_s']:.1f}",
                f"{figures['loss_difference']:.1e}",
            )
    Console().print(table)
    for result in results:
        print(result["model"], result["tier"], result["halves"], *result["breaks"])


def main() -> None:
    """Run the chosen cases."""
    options = benchmark_options(__doc__, CASES, 10, __file__)
    names = ["eager", "magweld"]
    names += [] if options.no_torch_compile else ["torch.compile"]
    runs = (run_case(name, options.rounds, names) for name in options.cases)
    show(reported(runs, options, show))


if __name__ == "__main__":
    main()
