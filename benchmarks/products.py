"""Matrix products: generated code against the library and eager, as ratios.

    python benchmarks/products.py [--cases MxKxN ...] [--rounds N] [-o FILE]

A linear layer without bias for each size: `generated` never calls a library, `chosen`
is what select-implementation decides. Ratios are of least times, above one is faster
than eager.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from reporting import benchmark_options, reported
from rich.console import Console
from rich.table import Table
from timing import interleaved
from torch import Tensor

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions

SIZES = (
    (16384, 256, 256),
    (4096, 1024, 1024),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (512, 512, 512),
    (1000, 1000, 1000),
    (997, 997, 997),
    (128, 3072, 768),
    (64, 4096, 4096),
    (1, 4096, 4096),
    (1024, 4096, 1024),
    (4096, 4096, 512),
)
CASES = {"x".join(map(str, size)): size for size in SIZES}
PEERS = {
    "library": CompileOptions(library="always"),
    "generated": CompileOptions(library="never"),
    "chosen": CompileOptions(),
}


def traced(options: CompileOptions) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a linear layer that is compiled as `options` say."""
    backend = partial(compile_graph, options=options)
    return frontend.trace(lambda x, w: F.linear(x, w), backend=backend)


def run_case(name: str, rounds: int) -> dict[str, Any]:
    """Measure one size."""
    rows, depth, columns = CASES[name]
    torch.manual_seed(0)
    x, w = torch.randn(rows, depth), torch.randn(columns, depth) * depth**-0.5
    calls: dict[str, Callable[[], Tensor]] = {"eager": lambda: F.linear(x, w)}
    for peer, options in PEERS.items():
        calls[peer] = partial(traced(options), x, w)
    times = interleaved(calls, rounds)
    expected = calls["eager"]()
    least = times["generated"].min_ms
    return {
        "case": name,
        "times": {peer: t.as_dict() for peer, t in times.items()},
        "over_eager": {p: times["eager"].min_ms / times[p].min_ms for p in PEERS},
        "gflops": 2 * rows * depth * columns / least / 1e6,
        "difference": float(
            (calls["generated"]() - expected).abs().max() / expected.abs().max()
        ),
    }


def show(results: list[dict[str, Any]]) -> None:
    """Print results as a table."""
    table = Table(
        "size", "eager ms", *(f"x {peer}" for peer in PEERS), "GFLOP/s", "diff"
    )
    for result in results:
        table.add_row(
            result["case"],
            f"{result['times']['eager']['min_ms']:.2f}",
            *(f"{result['over_eager'][peer]:.2f}" for peer in PEERS),
            f"{result['gflops']:.0f}",
            f"{result['difference']:.0e}",
        )
    Console(width=100).print(table)


def main() -> None:
    """Run the chosen sizes."""
    options = benchmark_options(__doc__, CASES, 15, __file__)
    with torch.no_grad():
        runs = (run_case(name, options.rounds) for name in options.cases)
        show(reported(runs, options, show))


if __name__ == "__main__":
    main()
