"""Loops and branches: first calls in CPU seconds, and the time of later calls.

    python benchmarks/loops.py [--cases NAME ...] [--rounds N] [-o FILE]

Each case and peer has a process of its own with empty caches. `first` are the CPU
seconds of the first call in this process and all that it starts: recording, imports,
compiling, one run. Later calls are timed in turns with eager; compiled code answers
them all (MAGWELD_RACE=0). A result that differs from eager's is an error, and so is a
process that takes longer than five minutes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from reporting import benchmark_options, reported
from rich.console import Console
from rich.table import Table
from timing import interleaved
from torch import Tensor, nn

from magweld import frontend

PEERS = ("magweld", "torch.compile")
NO_CACHES = {
    "MAGWELD_CACHE": "0",
    "MAGWELD_RACE": "0",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
}
TOLERANCE = 1e-4
HIDDEN = 256
# Seconds that a process may take: torch.compile of `newton-64` was not done after a
# quarter of an hour.
LONGEST = 300


class Cells(nn.Module):
    """A recurrent cell in a loop of Python; all states are stacked."""

    def __init__(self, cell: nn.LSTMCell | nn.GRUCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        """Return (steps, batch, hidden) of (steps, batch, hidden)."""
        state: Any = x.new_zeros(x.shape[1:])
        if isinstance(self.cell, nn.LSTMCell):
            state = state, state
        made = []
        for step in range(x.shape[0]):
            state = self.cell(x[step], state)
            made.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(made)


def newton(a: Tensor) -> Tensor:
    """Return reciprocals after 64 iterations."""
    y = torch.full_like(a, 0.1)
    for _ in range(64):
        y = y * (2 - a * y)
    return y


def converge(a: Tensor) -> Tensor:
    """Return reciprocals as soon as they are good; how often is known by then."""
    y = torch.full_like(a, 0.01)
    while (a * y - 1).abs().max() > 1e-3:
        y = y * (2 - a * y)
    return y


class Beams(nn.Module):
    """Scores of beams: the best are kept until all have ended."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (beams, width) and sums of scores (beams, 1)."""
        total = torch.zeros_like(x[:, :1])
        while total.min() < 8:
            x = torch.tanh(self.layer(x)) + 0.5 * x
            total = total + self.score(x).sigmoid()
        return x, total


class Branch(nn.Module):
    """One of two layers, whichever the values of the input ask for."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, width)."""
        x = torch.tanh(x)
        y = self.first(x).relu() if (x * x).sum() > 1 else self.second(x).sigmoid()
        return y * x + 1


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes:
        make: Makes it.
        shape: Of its input, which is between 0.5 and 1.5.
    """

    make: Callable[[], Callable[..., Any]]
    shape: tuple[int, ...]


def _cells(cell: type[nn.LSTMCell | nn.GRUCell], steps: int) -> Case:
    return Case(lambda: Cells(cell(HIDDEN, HIDDEN)), (steps, 1, HIDDEN))


CASES = {
    **{f"lstm-{steps}": _cells(nn.LSTMCell, steps) for steps in (5, 64, 256, 300)},
    "gru-256": _cells(nn.GRUCell, 256),
    "newton-64": Case(lambda: newton, (64, 256)),
    "while-newton": Case(lambda: converge, (64, 256)),
    "while-beams": Case(Beams, (8, 64)),
    "branch": Case(Branch, (8, 256)),
}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all that it has started."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    return (
        sum(own[:2]) + sum(ended[:2]) + sum(_seconds(p) for p in _children(os.getpid()))
    )


def _children(process: int) -> Iterator[int]:
    for folder in Path(f"/proc/{process}/task").iterdir():
        for child in (folder / "children").read_text().split():
            yield int(child)
            yield from _children(int(child))


def _seconds(process: int) -> float:
    """Return the CPU seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def measure(case: str, peer: str, rounds: int) -> dict[str, Any]:
    """Time a peer in this process.

    Raises:
        AssertionError: Its results differ from eager's.
    """
    torch.manual_seed(0)
    eager = CASES[case].make()
    x = torch.rand(CASES[case].shape) + 0.5
    found: dict[str, Any] = {"case": case, "peer": peer}
    with torch.no_grad():
        expected = eager(x)
        before = cpu_seconds()
        if peer == "magweld":
            compiled = frontend.trace(eager, compile="now")
        else:
            compiled = torch.compile(eager)
        compiled(x)
        found["first_cpu_seconds"] = cpu_seconds() - before
        for _ in range(2):
            torch.testing.assert_close(
                compiled(x), expected, rtol=TOLERANCE, atol=TOLERANCE
            )
        calls = {"eager": partial(eager, x), peer: partial(compiled, x)}
        times = interleaved(calls, rounds, warm_up=5)
    found["times"] = {name: one.as_dict() for name, one in times.items()}
    found["speedup"] = times["eager"].min_ms / times[peer].min_ms
    if peer == "magweld":
        found["stats"] = compiled.stats()
    return found


def measured_apart(case: str, peer: str, rounds: int, threads: int) -> dict[str, Any]:
    """Time a peer in a process of its own; `error` says why there are no times."""
    command = (sys.executable, __file__, "--measure", case, peer, rounds, threads)
    try:
        run = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, **NO_CACHES},
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        return {"case": case, "peer": peer, "error": f"not done after {LONGEST} s"}
    if run.returncode:
        last = (run.stderr.strip().splitlines() or ["no output"])[-1]
        return {"case": case, "peer": peer, "error": last}
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def table_of(results: list[dict[str, Any]]) -> Table:
    """Return the results as a table."""
    table = Table()
    for column in ("case", "peer", "first, CPU s", "eager, ms", "call, ms", "speedup"):
        table.add_column(
            column, justify="left" if column in ("case", "peer") else "right"
        )
    for found in results:
        if "error" in found:
            table.add_row(found["case"], found["peer"], found["error"])
            continue
        eager, own = (found["times"][n]["min_ms"] for n in ("eager", found["peer"]))
        first = f"{found['first_cpu_seconds']:.1f}"
        ratio = f"{found['speedup']:.2f}"
        table.add_row(
            found["case"], found["peer"], first, f"{eager:.3f}", f"{own:.3f}", ratio
        )
    return table


def main() -> None:
    """Measure all cases and write the report."""
    if sys.argv[1:2] == ["--measure"]:
        case, peer, rounds, threads = sys.argv[2:]
        torch.set_num_threads(int(threads))
        print(json.dumps(measure(case, peer, int(rounds))))
        return
    options = benchmark_options(__doc__, CASES, rounds=15, script=__file__)
    peers = PEERS[:1] if options.no_torch_compile else PEERS
    runs = (
        measured_apart(case, peer, options.rounds, options.threads)
        for case in options.cases
        for peer in peers
    )
    results = reported(runs, options)
    Console().print(table_of(results))
    failed = [f"{r['case']}: {r['error']}" for r in results if "error" in r]
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
