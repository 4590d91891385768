"""What a hit costs beside the graph: guards and mock, magweld and torch.compile.

The model is an encoder of 12 layers with about 200 parameters. The backend of both
front ends returns a constant, so a call measures all but the graph. "warm" repeats the
call; "cold" calls it after an eager forward has been through the caches. Calls of both
are interleaved; figures are medians. Beside them stands what a recording costs for each
instruction of Python that the model runs. It prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from reporting import report_file, write_report
from rich.console import Console
from rich.table import Table
from timing import seconds_of
from torch import nn
from torch.nn import functional as F

from magweld import frontend

LAYERS, HEADS, WIDTH = 12, 4, 64
# Recordings of the same model, of which the fastest counts.
RECORDINGS = 5


class Attention(nn.Module):
    """Self-attention with separate projections."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, heads, length, width / heads)."""
        return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Attend within each row of a batch."""
        q, k, v = (self.heads(f(x)) for f in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(x.shape)
        return self.dropout(self.output(mixed))


class Layer(nn.Module):
    """One encoder layer, norm after."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.first_norm = nn.LayerNorm(WIDTH)
        self.feed_forward = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.second_norm = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Return a tensor of the shape of `x`."""
        x = self.first_norm(x + self.attention(x, mask))
        return self.second_norm(x + self.feed_forward(x))


class Encoder(nn.Module):
    """Embeddings, layers and a head: 198 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, WIDTH)
        self.positions = nn.Embedding(64, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return (batch, length, WIDTH) for token numbers (batch, length)."""
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.positions(positions))
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x)


def microseconds(call: Callable[[], Any]) -> float:
    """Return the time of one call."""
    return seconds_of(call) * 1e6


def instructions(call: Callable[[], Any]) -> int:
    """Return how many instructions of Python a call runs, in all functions."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def constant_backend(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
    """Compile to a function that returns what the graph once gave."""
    outputs = gm(*inputs)
    return lambda *args: outputs


def measure(rounds: int) -> dict[str, Any]:
    """Return medians by front end and state of the caches, and the recording time."""
    model = Encoder().eval()
    ids = torch.randint(0, 1000, (2, 16))
    model(ids)

    def record() -> None:
        frontend.trace(model, backend="eager")(ids)

    recording = seconds_of(record)
    again = [seconds_of(record) for _ in range(RECORDINGS)]
    traced = frontend.trace(model, backend=constant_backend)
    compiled = torch.compile(model, backend=constant_backend, dynamic=False)
    calls: dict[str, Callable[[], Any]] = {
        "magweld": lambda: traced(ids),
        "torch.compile": lambda: compiled(ids),
        "eager": lambda: model(ids),
    }
    for call in calls.values():
        call()
    warm: dict[str, list[float]] = {name: [] for name in calls}
    cold: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        for name, call in calls.items():
            model(ids)
            cold[name].append(microseconds(call))
            call()
            warm[name].append(microseconds(call))
    stats = traced.stats()
    return {
        "parameters": len(list(model.parameters())),
        "modules": len(list(model.modules())),
        "guards": len(traced.records[0].guards),
        "misses": stats["misses"],
        "first_recording_s": recording,
        "recording_s": min(again),
        "instructions": instructions(lambda: model(ids)),
        "warm_us": {name: statistics.median(t) for name, t in warm.items()},
        "cold_us": {name: statistics.median(t) for name, t in cold.items()},
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    with torch.no_grad():
        result = measure(options.rounds)
    table = Table("state of caches", "magweld us", "torch.compile us", "ratio")
    for state in ("warm", "cold"):
        times = result[f"{state}_us"]
        ours, theirs = times["magweld"], times["torch.compile"]
        table.add_row(state, f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}")
    Console().print(table)
    print(
        f"{result['parameters']} parameters, {result['guards']} guards; recorded in"
        f" {result['first_recording_s']:.2f} s, again {result['recording_s']:.2f} s"
    )
    each = result["recording_s"] / result["instructions"] * 1e6
    print(f"{result['instructions']} instructions of Python, {each:.1f} us for each")
    write_report(options.o, torch.get_num_threads(), [result])


if __name__ == "__main__":
    main()
