"""The tables of the whole-model benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

OURS = "magweld"

Result = dict[str, Any]


def show(results: Sequence[Result], peers: Sequence[str]) -> None:
    """Print times, geometric means over each batch and threads, and what is absent."""
    table = Table("model", "batch", "threads", *(f"{peer} ms" for peer in peers))
    for result in results:
        table.add_row(*_case(result), *(_time(result, peer) for peer in peers))
    settings = sorted({(r["batch"], r["threads"]) for r in results})
    if len(results) > 1 and OURS in peers:
        for batch, threads in settings:
            group = [
                r for r in results if (r["batch"], r["threads"]) == (batch, threads)
            ]
            means = (_mean(_ratios(group, peer)) for peer in peers)
            table.add_row("x magweld, geometric mean", str(batch), str(threads), *means)
    console = Console(width=max(100, 45 + 16 * len(peers)))
    console.print(table)
    if any("compile_s" in result for result in results):
        console.print(_compile_table(results, peers))
    for line in _notes(results):
        console.print(line, markup=False)


def _case(result: Result) -> tuple[str, str, str]:
    return result["model"], str(result["batch"]), str(result["threads"])


def _time(result: Result, peer: str) -> str:
    times = result.get("times", {})
    if peer not in times:
        return "-"
    text = f"{times[peer]['min_ms']:.2f}"
    if OURS in times and peer != OURS:
        text += f" ({times[peer]['min_ms'] / times[OURS]['min_ms']:.2f})"
    return text


def _ratios(results: Iterable[Result], peer: str) -> list[float]:
    all_times = [result.get("times", {}) for result in results]
    return [
        times[peer]["min_ms"] / times[OURS]["min_ms"]
        for times in all_times
        if peer in times and OURS in times
    ]


def _mean(ratios: Sequence[float]) -> str:
    if not ratios:
        return "-"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{mean:.2f} of {len(ratios)}"


def _compile_table(results: Iterable[Result], peers: Sequence[str]) -> Table:
    table = Table("model", "batch", "threads", *(f"{p}: cold, cached s" for p in peers))
    for result in results:
        seconds = result.get("compile_s", {})
        cells = (
            ", ".join("-" if s is None else f"{s:.1f}" for s in seconds.get(peer, ()))
            for peer in peers
        )
        table.add_row(*_case(result), *cells)
    return table


def _notes(results: Iterable[Result]) -> Iterable[str]:
    for result in results:
        case = "{} (batch {}, {} threads)".format(*_case(result))
        for peer, reason in result.get("absent", {}).items():
            yield f"{case}: no {peer}: {reason}"
        for peer, error in result.get("wrong", {}).items():
            yield f"{case}: WRONG RESULT of {peer}: differs by {error:.1e}"
        if "died" in result:
            yield f"{case}: {result['died']}"
