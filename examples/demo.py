"""The main job: real models, traced, compiled and compared with eager PyTorch.

Run it with `make demo`. Sentences are ranked by similarity to a query with the real
MiniLM-L6; image models look at a photograph. For each model: records and graphs,
the fused groups with their predicted traffic, the largest difference from eager and
the time per call against eager.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import models
import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor, nn

from magweld import frontend

IMAGE_MODELS = ("resnet18", "convnext_tiny", "vit_tiny_patch16_224")
console = Console()


def best_milliseconds(call: Callable[[], Any], seconds: float = 1.5) -> float:
    """Return the shortest time of a call within a budget, in milliseconds."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def relative_difference(result: Tensor, expected: Tensor) -> float:
    """Return the largest difference relative to the largest magnitude."""
    scale = expected.abs().max().clamp(min=1e-30)
    return float((result - expected).abs().max() / scale)


class Step:
    """Shows one step of the work with a spinner and the time it takes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __enter__(self) -> None:
        self._start = time.perf_counter()
        columns = (SpinnerColumn(), TextColumn("{task.description}"))
        self._progress = Progress(
            *columns, TimeElapsedColumn(), console=console, transient=True
        )
        self._progress.start()
        self._progress.add_task(self._text, total=None)

    def __exit__(self, *error: object) -> None:
        self._progress.stop()
        seconds = time.perf_counter() - self._start
        if error[0] is None:
            console.print(f"  {self._text}: {seconds:.2f} s")


def show_groups(traced: Any, limit: int = 8) -> None:
    """Print the fused groups of the first record with predicted traffic."""
    report = traced.records[0].compiled.report()
    groups = report["groups"]
    table = Table("operators", "tile", "level", "MB before", "MB after", "saved")
    ranked = sorted(groups, key=_saved, reverse=True)
    for group in ranked[:limit]:
        before, after = (group.get(f"traffic_{k}", 0) for k in ("before", "after"))
        table.add_row(
            f"{len(group['operators'])} operators",
            "x".join(map(str, group["tile"])),
            group["level"],
            f"{before / 1e6:.2f}",
            f"{after / 1e6:.2f}",
            f"{100 * _saved(group) / before:.0f} %" if before else "",
        )
    console.print(table)
    before, after = (
        sum(g.get(f"traffic_{k}", 0) for g in groups) for k in ("before", "after")
    )
    console.print(
        f"  {len(groups)} generated kernels, predicted traffic of all "
        f"{before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after fusion"
    )
    if report["externals"]:
        console.print(f"  through torch: {len(report['externals'])} operators")


def _saved(group: dict[str, Any]) -> int:
    return int(group.get("traffic_before", 0) - group.get("traffic_after", 0))


def run_model(
    name: str, model: nn.Module, first: dict[str, Any], second: dict[str, Any]
) -> tuple[Any, tuple[str, ...]]:
    """Trace a model, check two calls against eager, and time it."""
    console.rule(name)
    traced = frontend.trace(model, compile="now")
    with Step("first call: monitor, compile, run"):
        traced(**first)
    with Step("second call, new values of the same shapes"):
        result = traced(**second)
    expected = model(**second)
    difference = relative_difference(result, expected)
    stats = traced.stats()
    console.print(
        f"  {stats['records']} record, {stats['graphs']} graph, "
        f"{stats['breaks']} breaks, {stats['hits']} hits"
    )
    if traced.records:
        show_groups(traced)
    else:
        console.print(traced.explain())
    eager = best_milliseconds(lambda: model(**second))
    ours = best_milliseconds(lambda: traced(**second))
    console.print(
        f"  largest difference from eager {difference:.1e} relative; "
        f"eager {eager:.2f} ms, magweld {ours:.2f} ms a call"
    )
    row = (
        name,
        f"{stats['records']}/{stats['graphs']}/{stats['breaks']}",
        f"{difference:.1e}",
        f"{eager:.2f}",
        f"{ours:.2f}",
        f"{eager / ours:.2f}",
    )
    return traced, row


def rank_sentences(traced: Any, sentence_model: models.SentenceModel) -> None:
    """Print the sentences by similarity to the query."""
    tokens = sentence_model.tokens((models.QUERY, *models.SENTENCES))
    vectors = traced(**tokens)
    scores = (vectors[1:] @ vectors[0]).tolist()
    table = Table("score", "sentence", title=models.QUERY)
    for score, text in sorted(zip(scores, models.SENTENCES, strict=True), reverse=True):
        table.add_row(f"{score:.3f}", text)
    console.print(table)


def sentences_row() -> tuple[str, ...]:
    """Embed and rank the sentences; return the row of the summary."""
    with Step("load MiniLM-L6"):
        sentence_model = models.load_sentence_model()
    batch = sentence_model.tokens((models.QUERY, *models.SENTENCES))
    length = batch["input_ids"].shape[1]
    other = sentence_model.tokens((*models.SENTENCES, models.QUERY), length)
    traced, row = run_model("MiniLM-L6", sentence_model.encoder, batch, other)
    rank_sentences(traced, sentence_model)
    return row


def image_row(name: str) -> tuple[str, ...]:
    """Run one image model on the photograph; return the row of the summary."""
    model = models.load_image_model(name)
    first, second = models.photograph(), models.photograph(shift=40)
    # timm's forward takes its image by the name `x`.
    _, row = run_model(name, model, {"x": first}, {"x": second})
    return row


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen models and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=["minilm", *IMAGE_MODELS])
    chosen = parser.parse_args(arguments).models
    torch.manual_seed(0)
    with torch.no_grad():
        rows = [sentences_row() if n == "minilm" else image_row(n) for n in chosen]
    summary = Table(
        "model",
        "records/graphs/breaks",
        "rel. difference",
        "eager ms",
        "magweld ms",
        "speed-up",
        title=f"{torch.get_num_threads()} threads",
    )
    for row in rows:
        summary.add_row(*row)
    console.print(summary)


if __name__ == "__main__":
    main()
