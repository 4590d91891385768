"""Time per call of whole models: eager, torch.compile and magweld side by side.

Runs of the three are interleaved, so that noise of the machine hits all alike; the
figure of each is its median and its minimum, the ratios are of medians. Run it with
`make bench`; it prints a table and writes JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import models
from reporting import benchmark_options, write_report
from timing import interleaved, seconds_of

from magweld import frontend

SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank. "


def sentence_case() -> tuple[Any, dict[str, Any]]:
    """MiniLM-L6 on 8 sentences of 64 tokens, padding included."""
    model = models.load_sentence_model()
    texts = [SENTENCE * (1 + i % 6) for i in range(8)]
    return model.encoder, model.tokens(texts, 64)


def image_case(name: str) -> tuple[Any, dict[str, Any]]:
    """An image model on one photograph."""
    return models.load_image_model(name), {"x": models.photograph()}


CASES: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "minilm-8x64": sentence_case,
    "resnet18": lambda: image_case("resnet18"),
    "convnext_tiny": lambda: image_case("convnext_tiny"),
    "vit_tiny": lambda: image_case("vit_tiny_patch16_224"),
}


def run_case(name: str, rounds: int, peers: list[str]) -> dict[str, Any]:
    """Measure one model; the ratio is the peer's median over magweld's."""
    model, inputs = CASES[name]()
    traced = frontend.trace(model)
    compiled: dict[str, Callable[[], Any]] = {
        "eager": lambda: model(**inputs),
        "magweld": lambda: traced(**inputs),
    }
    if "torch.compile" in peers:
        dynamo = torch.compile(model)
        compiled["torch.compile"] = lambda: dynamo(**inputs)
    first = {n: seconds_of(c) for n, c in compiled.items()}
    expected, got = compiled["eager"](), compiled["magweld"]()
    scale = expected.abs().max()
    times = interleaved(compiled, rounds)
    result: dict[str, Any] = {name: t.as_dict() for name, t in times.items()}
    ours = times["magweld"].median_ms
    for peer in result:
        result[peer]["first_call_s"] = first[peer]
        result[peer]["ratio_to_magweld"] = result[peer]["median_ms"] / ours
    stats = traced.stats()
    return {
        "model": name,
        "rel_difference": float((got - expected).abs().max() / scale),
        "records": stats["records"],
        "graphs": stats["graphs"],
        "breaks": stats["breaks"],
        "times": result,
    }


def show(results: list[dict[str, Any]]) -> None:
    """Print the results as a table."""
    table = Table("model", "peer", "median ms", "min ms", "x magweld", "first call s")
    for result in results:
        for peer, figures in result["times"].items():
            table.add_row(
                result["model"],
                peer,
                f"{figures['median_ms']:.2f}",
                f"{figures['min_ms']:.2f}",
                f"{figures['ratio_to_magweld']:.2f}",
                f"{figures['first_call_s']:.2f}",
            )
    Console().print(table)


def main() -> None:
    """Run the chosen cases."""
    output = "benchmarks/results/whole_models.json"
    options = benchmark_options(__doc__, CASES, 40, output)
    peers = [] if options.no_torch_compile else ["torch.compile"]
    with torch.no_grad():
        results = [run_case(name, options.rounds, peers) for name in options.cases]
    show(results)
    write_report(options.o, options.threads, results)


if __name__ == "__main__":
    main()
