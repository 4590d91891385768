"""Programs whose sizes, steps or branches change: magweld beside torch.compile.

Each program is called with a stream of different inputs, then with the same stream
again. Both front ends run their graphs through torch, so the table compares captures:
how many graphs they make, what the first pass costs, and a call of the second pass.
Results are compared with eager on every call. It prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from reporting import report_file, write_report
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional as F

from magweld import frontend

WIDTH, HEADS, LAYERS = 64, 4, 4
Stream = Sequence[tuple[Any, ...]]


class Encoder(nn.Module):
    """Token and position embeddings, padding mask, post-norm layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(500, WIDTH)
        self.positions = nn.Embedding(128, WIDTH)
        self.register_buffer("numbers", torch.arange(128)[None])
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return (batch, length, WIDTH)."""
        length = ids.size(1)
        x = self.words(ids) + self.positions(self.numbers[:, :length])
        x = self.norm(x)
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -1e4
        for layer in self.layers:
            x = layer(x, bias)
        return x


class EncoderLayer(nn.Module):
    """Attention written out, then a feed-forward block."""

    def __init__(self) -> None:
        super().__init__()
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.first_norm = nn.LayerNorm(WIDTH)
        self.inner = nn.Linear(WIDTH, 4 * WIDTH)
        self.outer = nn.Linear(4 * WIDTH, WIDTH)
        self.second_norm = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the shape of `x`."""
        batch, length, width = x.shape
        parts = self.projections(x).view(batch, length, 3, HEADS, width // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (q.size(-1) ** 0.5) + bias
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = self.first_norm(x + self.output(mixed))
        return self.second_norm(x + self.outer(F.gelu(self.inner(x))))


class UnrolledLstm(nn.Module):
    """An LSTM written as a loop over the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(16, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, steps, 32)."""
        h = c = x.new_zeros(x.size(0), 32)
        outputs = []
        for step in range(x.size(1)):
            h, c = self.cell(x[:, step], (h, c))
            outputs.append(h)
        return torch.stack(outputs, 1)


class Lstm(nn.Module):
    """The LSTM of torch with a head on the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.head = nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, 8)."""
        outputs, _ = self.lstm(x)
        return self.head(outputs[:, -1])


class DroppedBlocks(nn.Module):
    """Residual blocks; a small policy looks at the input and leaves some out."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = nn.Linear(16, 4)
        self.blocks = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the shape of `x`."""
        keep = self.policy(x.mean(0)) > 0
        for number, block in enumerate(self.blocks):
            if keep[number]:
                x = x + torch.relu(block(x))
        return x


class Counter(nn.Module):
    """A module that counts its calls and uses the count."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.scale = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the shape of `x`."""
        self.calls += 1
        return self.scale(x) / self.calls


def encoder_stream() -> Iterator[tuple[Any, ...]]:
    """Yield batches of 2 to 9 rows and 8 to 64 tokens."""
    for number in range(40):
        batch, length = 2 + number * 5 % 8, 8 + number * 13 % 57
        ids = torch.randint(0, 500, (batch, length))
        yield ids, (torch.rand(batch, length) > 0.2).long()


def step_stream(steps: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Yield sequences with the given numbers of steps."""
    for number, count in enumerate(steps):
        yield (torch.randn(2 + number % 3, count, 16),)


def row_stream() -> Iterator[tuple[Any, ...]]:
    """Yield rows of one shape."""
    for _ in range(40):
        yield (torch.randn(8, 16),)


PROGRAMS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Stream]]] = {
    "encoder, batch and length": (Encoder, lambda: list(encoder_stream())),
    "torch's LSTM, 2 to 31 steps": (
        Lstm,
        lambda: list(step_stream([2 + 7 * n % 30 for n in range(40)])),
    ),
    "unrolled LSTM, 2 to 6 steps": (
        UnrolledLstm,
        lambda: list(step_stream([2 + 3 * n % 5 for n in range(40)])),
    ),
    "dropped blocks": (DroppedBlocks, lambda: list(row_stream())),
    "counter": (Counter, lambda: list(row_stream())),
}


class Graphs:
    """Counts the graphs that torch.compile makes."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, gm: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        """Take one graph; it runs as it is."""
        self.count += 1
        return gm.forward


def twice(
    call: Callable[..., Any], stream: Stream, results: list[torch.Tensor]
) -> tuple[float, float]:
    """Run a stream twice; return seconds of the first pass, a call of the second."""
    start = time.perf_counter()
    for args, expected in zip(stream, results, strict=False):
        torch.testing.assert_close(call(*args), expected, rtol=1e-4, atol=1e-5)
    first = time.perf_counter() - start
    times = []
    for args in stream:
        start = time.perf_counter()
        call(*args)
        times.append(time.perf_counter() - start)
    return first, statistics.median(times)


def measure(make: Callable[[], nn.Module], stream: Stream) -> dict[str, Any]:
    """Return counts and times of one program."""
    models = []
    for _ in range(3):
        torch.manual_seed(0)
        models.append(make().eval())
    results = [models[0](*args) for args in stream]
    _, eager = twice(models[0], stream, [])
    traced = frontend.trace(models[1], backend="eager")
    ours = twice(traced, stream, results)
    torch.compiler.reset()
    graphs = Graphs()
    compiled = torch.compile(models[2], backend=graphs, dynamic=True)
    theirs = twice(compiled, stream, results)
    stats = traced.stats()
    return {
        "calls": stats["calls"],
        "hits": stats["hits"],
        "records": stats["records"],
        "recorded": stats["graphs"],
        "breaks": sorted({item.id for item in traced.breaks}),
        "graphs_of_torch_compile": graphs.count,
        "eager_us": eager * 1e6,
        "first_pass_s": {"magweld": ours[0], "torch.compile": theirs[0]},
        "call_us": {"magweld": ours[1] * 1e6, "torch.compile": theirs[1] * 1e6},
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    table = Table(
        "program",
        "records",
        "hits",
        "graphs of torch.compile",
        "first pass s",
        "torch.compile s",
        "call us",
        "torch.compile us",
        "eager us",
    )
    results: list[dict[str, Any]] = []
    with torch.no_grad():
        for name, (make, stream) in PROGRAMS.items():
            result = {"program": name, **measure(make, stream())}
            results.append(result)
            first, call = result["first_pass_s"], result["call_us"]
            table.add_row(
                name,
                str(result["records"]),
                f"{result['hits']} of {result['calls']}",
                str(result["graphs_of_torch_compile"]),
                f"{first['magweld']:.2f}",
                f"{first['torch.compile']:.2f}",
                f"{call['magweld']:.0f}",
                f"{call['torch.compile']:.0f}",
                f"{result['eager_us']:.0f}",
            )
    Console(width=160).print(table)
    write_report(options.o, options.threads, results)


if __name__ == "__main__":
    main()
