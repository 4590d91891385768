"""Models whose sizes change from call to call: one program beside one for each size.

    python benchmarks/sizes.py [--cases NAME ...] [--rounds N] [--no-torch-compile]

A model is traced once and called for sizes that are not those measured; then each
measured size is called until its time counts. Beside it run eager, torch.compile with
`dynamic=True`, and the same model traced anew for that one size. `programs` counts what
was compiled for all these calls, records of the first sizes among them. A result that
differs from eager's is an error. The decoder writes 64 tokens as well, each in a call
with a longer cache; no model is traced for one size there. The report is written behind
each model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from papers.unet import UNet
from reporting import benchmark_options, write_report
from rich.console import Console
from rich.table import Table
from timing import interleaved
from torch import Tensor, nn
from torch.nn import functional as F

from magweld import frontend

TOLERANCE = 1e-3
Inputs = tuple[Any, ...]


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward block, each normalised after its sum."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return (batch, length, width).

        Args:
            x: The same shape.
            mask: (batch, 1, 1, length), true where a token counts.
        """
        batch, length, width = x.shape
        shape = batch, length, self.heads, width // self.heads
        parts = [
            part.view(shape).transpose(1, 2) for part in self.inputs(x).chunk(3, -1)
        ]
        mixed = F.scaled_dot_product_attention(*parts, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        x = self.norms[0](x + self.output(mixed))
        return self.norms[1](x + self.outer(F.gelu(self.inner(x))))


class Encoder(nn.Module):
    """BERT with a quarter of its width: token and position embeddings, four layers."""

    def __init__(self, width: int = 192, heads: int = 6, layers: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.positions = nn.Embedding(256, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return (batch, length, width) of tokens and mask (batch, length)."""
        x = self.words(tokens) + self.positions.weight[: tokens.shape[1]]
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask[:, None, None, :])
        return x


class DecoderLayer(nn.Module):
    """A layer of Llama with the keys and values of earlier tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries, self.keys, self.values, self.output = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, kept: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return (batch, 1, width), and the cache with one token more."""
        batch, length, width = x.shape
        shape = batch, length, self.heads, width // self.heads
        y = self.norms[0](x)
        query, key, value = (
            linear(y).view(shape).transpose(1, 2)
            for linear in (self.queries, self.keys, self.values)
        )
        query, key = (turned(part, cos, sin) for part in (query, key))
        kept = torch.cat((kept[0], key), 2), torch.cat((kept[1], value), 2)
        mixed = F.scaled_dot_product_attention(query, *kept)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), kept


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return x with a rotary embedding, "RoFormer", section 3.2.2, halves as pairs."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Decoder(nn.Module):
    """Llama's layers: one token with the cache of those before it."""

    def __init__(self, width: int = 256, heads: int = 8, layers: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, 1000, bias=False)

    def forward(
        self, token: Tensor, cos: Tensor, sin: Tensor, *cache: Tensor
    ) -> tuple[Tensor, ...]:
        """Return scores of words (batch, 1, 1000), and the longer cache."""
        x = self.words(token)
        longer: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            x, kept = layer(x, cos, sin, cache[2 * number : 2 * number + 2])
            longer += kept
        return self.head(self.norm(x)), *longer


class Block(nn.Module):
    """Two convolutions with a skip connection, "Deep residual learning", figure 2."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.skip = nn.Sequential()
        if stride > 1:
            convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.skip = nn.Sequential(convolution, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, outputs, height / stride, width / stride)."""
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.skip(x))


class ResNet18(nn.Module):
    """ "Deep residual learning", table 1, 18 layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        self.blocks = nn.Sequential(
            *(Block(i, o, o // i) for i, o in itertools.pairwise(widths))
        )
        self.head = nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores (batch, 1000) of images (batch, 3, height, width)."""
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class Lstm(nn.Module):
    """torch's LSTM, and a classifier of the last step."""

    def __init__(self, inputs: int = 40, hidden: int = 128) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores (batch, 10) of a sequence (batch, steps, inputs)."""
        outputs, _ = self.lstm(x)
        return self.head(outputs[:, -1])


def sentences(batch: int, length: int) -> Inputs:
    """Return tokens, and masks of rows that end in padding."""
    lengths = length - torch.arange(batch) * 7 % (length // 2)
    mask = torch.arange(length) < lengths[:, None]
    return torch.randint(0, 1000, (batch, length)), mask


def cached(length: int) -> Inputs:
    """Return a token, its position's angles, and keys and values of those before it."""
    cache = [torch.randn(1, 8, length, 32) for _ in range(8)]
    return torch.randint(0, 1000, (1, 1)), *rotation(length), *cache


def rotation(position: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of a position's angles, (32) each."""
    angles = position * 10000.0 ** (-torch.arange(16) / 16)
    angles = torch.cat((angles, angles))
    return angles.cos(), angles.sin()


def images(size: int) -> Inputs:
    """Return one image."""
    return (torch.randn(1, 3, size, size),)


def sequences(steps: int) -> Inputs:
    """Return two sequences."""
    return (torch.randn(2, steps, 40),)


@dataclass(frozen=True)
class Case:
    """A model and sizes of its inputs.

    Attributes:
        make: Makes it.
        inputs: Takes a size.
        warm: Sizes of the calls before those that are measured.
        measured: Sizes that are.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[..., Inputs]
    warm: Sequence[tuple[int, ...]]
    measured: Sequence[tuple[int, ...]]


def one(*sizes: int) -> list[tuple[int, ...]]:
    """Return sizes of which each is the only one of a call."""
    return [(size,) for size in sizes]


CASES = {
    "encoder": Case(
        Encoder,
        sentences,
        [(2, 20), (3, 31), (5, 12), (4, 50), (9, 17), (7, 90), (6, 33)],
        [(1, 7), (1, 64), (2, 200), (4, 33), (8, 128), (16, 24), (16, 200)],
    ),
    "decoder": Case(
        Decoder, cached, one(*range(8, 18)), one(1, 7, 32, 65, 128, 200, 511)
    ),
    "lstm": Case(Lstm, sequences, one(9, 12, 31, 17, 22, 40), one(5, 30, 64, 150, 300)),
    "resnet18": Case(
        ResNet18,
        images,
        one(192, 256, 208, 176, 288, 240, 304),
        one(160, 200, 224, 320),
    ),
    "unet": Case(UNet, images, one(64, 96, 112, 144, 80, 176), one(32, 128, 208)),
}
TOKENS = 64


def generate(step: Callable[..., Any]) -> Tensor:
    """Return the tokens that a decoder writes, (tokens), each the likeliest one.

    Args:
        step: The decoder, called as `Decoder.forward`.
    """
    generator = torch.Generator().manual_seed(0)
    token = torch.zeros(1, 1, dtype=torch.int64)
    cache = [torch.randn(1, 8, 1, 32, generator=generator) for _ in range(8)]
    written = []
    for length in range(1, TOKENS + 1):
        scores, *cache = step(token, *rotation(length), *cache)
        token = scores[:, -1:].argmax(-1)
        written.append(token.view(()))
    return torch.stack(written)


def measure_generation(
    peers: dict[str, Callable[..., Any]], rounds: int
) -> dict[str, float]:
    """Return the least milliseconds in which each peer writes the tokens."""
    expected = generate(peers["eager"])
    for call in peers.values():
        for _ in range(4):
            if not torch.equal(generate(call), expected):
                raise AssertionError("other tokens than eager's")
    bound = {name: partial(generate, call) for name, call in peers.items()}
    times = interleaved(bound, rounds)
    return {name: found.min_ms for name, found in times.items()}


def measure(case: Case, rounds: int, *, with_compile: bool) -> dict[str, Any]:
    """Return the counts of a case, and the times of its sizes in milliseconds."""
    torch.manual_seed(0)
    model = case.make().eval()
    traced = frontend.trace(model, compile="now")
    peers: dict[str, Callable[..., Any]] = {"eager": model, "magweld": traced}
    if with_compile:
        torch.compiler.reset()
        peers["torch.compile"] = torch.compile(model, dynamic=True)
    for size in case.warm:
        inputs = case.inputs(*size)
        expected = model(*inputs)
        for call in peers.values():
            check(call(*inputs), expected)
    rows = [
        {"size": size, "ms": measure_size(case, model, peers, size, rounds)}
        for size in case.measured
    ]
    if case.make is Decoder:
        rows.append({"size": [f"{TOKENS} new"], "ms": measure_generation(peers, 5)})
    report = traced.stats()
    reasons = sorted(set(map(str, traced.breaks)))
    counts = {key: report[key] for key in ("calls", "hits", "records", "compilations")}
    return {**counts, "rows": rows, "breaks": reasons}


def measure_size(
    case: Case,
    model: nn.Module,
    peers: dict[str, Callable[..., Any]],
    size: tuple[int, ...],
    rounds: int,
) -> dict[str, float]:
    """Return the least milliseconds of each peer for a size."""
    inputs = case.inputs(*size)
    expected = model(*inputs)
    own = frontend.trace(model, compile="now", dynamic=False)
    calls = {**peers, "own": own}
    for call in calls.values():
        for _ in range(4):
            check(call(*inputs), expected)
    bound = {name: _bound(call, inputs) for name, call in calls.items()}
    times = interleaved(bound, rounds)
    return {name: found.min_ms for name, found in times.items()}


def _bound(call: Callable[..., Any], inputs: Inputs) -> Callable[[], Any]:
    return lambda: call(*inputs)


def check(result: Any, expected: Any) -> None:
    """Compare a result with eager's."""
    torch.testing.assert_close(result, expected, rtol=TOLERANCE, atol=TOLERANCE)


def mean(numbers: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(math.fsum(map(math.log, numbers)) / len(numbers))


def add_rows(table: Table, result: dict[str, Any], peers: Sequence[str]) -> None:
    """Add a line for each size of a case, and one for all of them."""
    rows = result["rows"]
    for row in rows:
        size, ms = " x ".join(map(str, row["size"])), row["ms"]
        ratios = (ms[peer] / ms["magweld"] if peer in ms else None for peer in peers)
        cells = ("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        table.add_row(result["case"], size, "", f"{ms['magweld']:.3f}", *cells)
    means = (
        mean([row["ms"][p] / row["ms"]["magweld"] for row in rows if p in row["ms"]])
        for p in peers
    )
    cells = (f"{ratio:.2f}" for ratio in means)
    table.add_row(result["case"], "mean", str(result["compilations"]), "", *cells)
    table.add_section()


def main() -> None:
    """Measure and report."""
    options = benchmark_options(__doc__, CASES, 20, __file__)
    peers = ["eager", *([] if options.no_torch_compile else ["torch.compile"]), "own"]
    table = Table("model", "size", "programs", "magweld ms", *(f"x {p}" for p in peers))
    results = []
    with torch.no_grad():
        for name in options.cases:
            with_compile = not options.no_torch_compile
            result = measure(CASES[name], options.rounds, with_compile=with_compile)
            results.append({"case": name, **result})
            add_rows(table, results[-1], peers)
            write_report(options.o, options.threads, results)
    Console(width=120).print(table)
    for result in results:
        for reason in result["breaks"]:
            print(f"{result['case']}: {reason}")


if __name__ == "__main__":
    main()
