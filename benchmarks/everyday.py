"""Everyday programs as users run them: eager, torch.compile and magweld side by side.

Nothing is tuned: `trace(program)` with its defaults. Each program is called ten times
by each peer; then magweld's background compilation is waited for, and further calls let
it choose between its code, torch and eager. Then the peers are called in turns: each
peer makes all calls of a round in a row, as a program that uses one of them does. The
table has the ratios of the sums of their least times over the same arguments.

`stall` is the longest of magweld's twenty calls beside the first, less the longest of
eager's: what a user waits who did not expect to wait. `first` is the first call.
Differences are the largest of any call, relative to the largest magnitude of eager's
result. It prints a table and writes JSON.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from everyday_cases import CASES, Arguments, Case
from reporting import benchmark_options, write_report
from rich.console import Console
from rich.table import Table
from torch.utils import _pytree as pytree

from magweld import frontend

CALLS = 10
# The calls of a round: every size that a case has comes in each.
ROUND = 24
# Rounds before times count: each size is compiled, and timed against torch and eager.
SETTLING = 24


@dataclass
class Peer:
    """One way to run a program.

    Attributes:
        call: Runs the program with some arguments; for training, takes a step.
        seconds: Times of the calls so far.
    """

    call: Callable[[Arguments], Any]
    seconds: list[float] = field(default_factory=list)

    def run(self, number: int, arguments: Arguments) -> list[Any]:
        """Call the program; return the leaves of its result."""
        torch.manual_seed(number)
        start = time.perf_counter()
        result = self.call(arguments)
        self.seconds.append(time.perf_counter() - start)
        return pytree.tree_leaves(result)


def inference(program: Any) -> Peer:
    """Return a peer that calls a program without gradients."""

    def call(arguments: Arguments) -> Any:
        with torch.no_grad():
            return program(*arguments)

    return Peer(call)


def training(model: Any, loss_of: Any) -> Peer:
    """Return a peer that takes training steps with a model."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)

    def call(arguments: Arguments) -> Any:
        loss = loss_of(model, arguments)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Peer(call)


def programs_of(case: Case, program: Any, with_inductor: bool) -> dict[str, Any]:
    """Return the program of each peer; in training each has a model of its own."""
    wraps: dict[str, Callable[[Any], Any]] = {"eager": lambda x: x}
    if with_inductor:
        wraps["torch.compile"] = torch.compile
    wraps["magweld"] = frontend.trace
    made = {}
    for name, wrap in wraps.items():
        made[name] = wrap(copy.deepcopy(program) if case.trains else program)
    return made


def difference(found: list[Any], expected: list[Any]) -> float:
    """Return the largest difference relative to the largest magnitude."""
    worst = 0.0
    for left, right in zip(found, expected, strict=True):
        if isinstance(right, torch.Tensor) and right.is_floating_point():
            scale = max(float(right.abs().max()), 1e-30)
            worst = max(worst, float((left - right).abs().max()) / scale)
        elif isinstance(right, torch.Tensor):
            worst = max(worst, float((left != right).any()))
        else:
            worst = max(worst, float(left != right))
    return worst


def run_all(
    peers: dict[str, Peer], absent: dict[str, str], first: int, given: list[Arguments]
) -> dict[str, list[list[Any]]]:
    """Return the results of some calls by peer.

    Args:
        peers: Those that run; torch.compile is taken out when it raises.
        absent: Gets what it has raised.
        first: Number of the first call.
        given: Arguments of each call.
    """
    results: dict[str, list[list[Any]]] = {}
    for key, peer in [*peers.items()]:
        try:
            results[key] = [
                peer.run(first + number, copy.deepcopy(each))
                for number, each in enumerate(given)
            ]
        except RuntimeError as error:
            if key != "torch.compile":
                raise
            absent[key] = str(error).partition("\n")[0]
            del peers[key]
    return results


def measure(name: str, rounds: int, with_inductor: bool) -> dict[str, Any]:
    """Return the figures of one case."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    case = CASES[name]
    program, arguments = case.make()
    loss_of = program.__dict__.pop("loss_of") if case.trains else None
    programs = programs_of(case, program, with_inductor)
    traced = programs["magweld"]
    peers = {
        key: training(made, loss_of) if case.trains else inference(made)
        for key, made in programs.items()
    }
    worst = dict.fromkeys(peers, 0.0)
    absent: dict[str, str] = {}

    def calls(first: int, count: int) -> None:
        given = [arguments(number) for number in range(first, first + count)]
        results = run_all(peers, absent, first, given)
        for key, found in results.items():
            for result, expected in zip(found, results["eager"], strict=True):
                worst[key] = max(worst[key], difference(result, expected))

    calls(0, CALLS)
    traced.wait()
    calls(CALLS, CALLS)
    early = {key: list(peer.seconds) for key, peer in peers.items()}
    for _ in range(SETTLING):
        traced.wait()
        calls(2 * CALLS, ROUND)
    least = {}
    for peer in peers.values():
        peer.seconds.clear()
    for _ in range(rounds):
        calls(2 * CALLS, ROUND)
    for key, peer in peers.items():
        times = [min(peer.seconds[n::ROUND]) for n in range(ROUND)]
        least[key] = sum(times) / ROUND
    stats = traced.stats()
    return {
        "case": name,
        "milliseconds": {key: seconds * 1e3 for key, seconds in least.items()},
        "first_seconds": {key: times[0] for key, times in early.items()},
        "stall_ms": 1e3 * (max(early["magweld"][1:]) - max(early["eager"][1:])),
        "difference": worst,
        **({"absent": absent} if absent else {}),
        "stats": stats,
        "breaks": [str(item) for item in traced.breaks],
    }


def table_of(results: list[dict[str, Any]]) -> Table:
    """Return the figures as a table."""
    table = Table(
        "program", title="milliseconds a call; ratios above 1: ours is faster"
    )
    titles = ("eager ", "torch.compile", "magweld", "/ eager", "/ compile")
    for title in (*titles, "first s", "stall ms", "difference", "torch", "eager"):
        table.add_column(title, justify="right")
    for row in results:
        times = row["milliseconds"]
        ours = times["magweld"]
        compiled = times.get("torch.compile")
        hits = row["stats"]["hits"]
        table.add_row(
            row["case"],
            f"{times['eager']:.3f}",
            f"{compiled:.3f}" if compiled else "-",
            f"{ours:.3f}",
            f"{times['eager'] / ours:.2f}",
            f"{compiled / ours:.2f}" if compiled else "-",
            f"{row['first_seconds']['magweld']:.2f}",
            f"{row['stall_ms']:.0f}",
            f"{row['difference']['magweld']:.1e}",
            f"{row['stats']['torch_hits']}/{hits}",
            str(row["stats"]["eager"]),
        )
    return table


def main() -> None:
    """Measure the chosen cases, print the table and write the report."""
    options = benchmark_options(__doc__, CASES, 8, __file__)
    results: list[dict[str, Any]] = []
    console = Console(width=140)
    for name in options.cases:
        console.print(f"{name} ...", end="\r")
        results.append(measure(name, options.rounds, not options.no_torch_compile))
        console.print(table_of(results[-1:]) if len(options.cases) < 4 else "", end="")
        found = summary(results)
        # After each case: an interrupted run keeps what it has.
        write_report(options.o, options.threads, results, **found)
    console.print(table_of(results))
    slower, stalled = (", ".join(names) or "none" for names in found.values())
    console.print(f"slower than eager by more than 5 %: {slower}")
    console.print(f"a later call waits more than 50 ms: {stalled}")


def summary(results: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the cases that are slower than eager, and those that stall a call."""
    return {
        "slower": [
            row["case"]
            for row in results
            if row["milliseconds"]["magweld"] > 1.05 * row["milliseconds"]["eager"]
        ],
        "stalled": [row["case"] for row in results if row["stall_ms"] > 50],
    }


if __name__ == "__main__":
    main()
