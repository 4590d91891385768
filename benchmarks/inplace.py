"""Slices, joins, cache updates and look-ups: eager, torch.compile and magweld.

    python benchmarks/inplace.py [--cases NAME ...] [--rounds N] [-o FILE]

Each case moves elements around little arithmetic, so that a pass over memory that is
not needed shows. `kernels` are the steps that generated code runs, `torch` those that
torch runs. All peers of a case run in turns; ratios are of least times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from reporting import benchmark_options, reported
from rich.console import Console
from rich.table import Table
from timing import interleaved, seconds_of
from torch import Tensor

from magweld import frontend
from magweld.api import compile_graph

Case = tuple[Callable[..., Any], tuple[Tensor, ...]]


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate positions of halves of a head."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate positions of neighbours in a head."""
    even, odd = x[..., ::2], x[..., 1::2]
    pairs = (even * cos - odd * sin, even * sin + odd * cos)
    return torch.stack(pairs, -1).flatten(-2)


def split_heads(x: Tensor, weight: Tensor) -> Tensor:
    """Attend with queries, keys and values of one product."""
    batch, length, width = x.shape
    heads = (x @ weight).view(batch, length, 3, 8, width // 8)
    q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
    return F.scaled_dot_product_attention(q, k, v)


def grow_cache(cache: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Append to a cache that is read as well."""
    grown = torch.cat((cache, new), 2)
    return grown, grown.sum(-1)


def write_cache(cache: Tensor, new: Tensor) -> Tensor:
    """Write one position of a cache."""
    cache = cache.clone()
    cache[:, :, 5:6] = new
    return cache * 2


def gates(x: Tensor) -> Tensor:
    """Apply an operator of its own to each quarter."""
    a, b, c, d = x.chunk(4, -1)
    return torch.cat((a.sigmoid(), b.relu(), c.tanh(), d * 2), -1)


def split_and_join(x: Tensor) -> Tensor:
    """Split, turn around and join, twice."""
    turned = torch.cat(x.split(16, 1)[::-1], 1)
    return torch.cat([part.relu() for part in turned.split(16, 1)], 1)


def stack_slices(x: Tensor) -> Tensor:
    """Scale slices, and stack them again."""
    return torch.stack([x[:, i] * (i + 1) for i in range(x.shape[1])], 1)


def cases() -> dict[str, Case]:
    """Return the functions and their arguments, by name."""
    draw = torch.randn
    rows = draw(64, 1024)
    ids = torch.randint(0, 1000, (2048,))
    bags = torch.arange(0, 2048, 8)
    table = draw(1000, 64)
    return {
        "rope-halves": (
            rotate_halves,
            (draw(1, 8, 256, 64), draw(256, 64), draw(256, 64)),
        ),
        "rope-pairs": (
            rotate_pairs,
            (draw(1, 8, 256, 64), draw(256, 32), draw(256, 32)),
        ),
        "split-heads": (split_heads, (draw(2, 64, 256), draw(256, 768) / 16)),
        "grow-cache": (grow_cache, (draw(1, 8, 128, 64), draw(1, 8, 1, 64))),
        "write-cache": (write_cache, (draw(1, 8, 128, 64), draw(1, 8, 1, 64))),
        "gates": (gates, (rows,)),
        "pixel-shuffle": (
            lambda x: F.pixel_shuffle(x, 2).relu(),
            (draw(2, 64, 32, 32),),
        ),
        "slices": (lambda x: x[:, 2:-2][:, 1:][:, :20].exp(), (draw(64, 100, 8),)),
        "roll": (lambda x: torch.roll(x, (3,), (-1,)) + 1, (rows,)),
        "flip": (lambda x: x.flip(-1) * 2, (rows,)),
        "stack-slices": (stack_slices, (draw(64, 8, 32),)),
        "split-and-join": (split_and_join, (draw(64, 128),)),
        "split-join": (lambda x: torch.cat(x.split(16, 1), 1).relu(), (rows,)),
        "pad-convolution": (
            lambda x, w: F.conv2d(F.pad(x, (1, 1, 1, 1)), w).relu(),
            (draw(1, 16, 32, 32), draw(16, 16, 3, 3) / 12),
        ),
        "bags-sum": (
            lambda t, i, o: F.embedding_bag(i, t, o, mode="sum"),
            (table, ids, bags),
        ),
        "bags-mean": (
            lambda t, i, o: F.embedding_bag(i, t, o, mode="mean"),
            (table, ids, bags),
        ),
        "index-select": (lambda t, i: t.index_select(0, i) * 2, (table, ids)),
        "scatter-add": (
            lambda x, i, s: torch.scatter_add(x, 0, i, s) + 1,
            (draw(100, 64), torch.randint(0, 100, (50, 64)), draw(50, 64)),
        ),
        "index-copy": (
            lambda x, i, s: x.index_copy(0, i, s) + 1,
            (draw(100, 64), torch.randperm(100)[:50], draw(50, 64)),
        ),
    }


def run_case(name: str, case: Case, rounds: int, peer: bool) -> dict[str, Any]:
    """Measure one case; count the steps of its program."""
    function, arguments = case
    made: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        made.append(compile_graph(graph, inputs))
        return made[-1]

    functions: dict[str, Callable[..., Any]] = {"eager": function}
    if peer:
        functions["torch.compile"] = torch.compile(function, dynamic=False)
    functions["magweld"] = frontend.trace(function, backend=backend)
    calls = {
        name: lambda function=function: function(*arguments)  # type: ignore[misc]
        for name, function in functions.items()
    }
    first = {name: seconds_of(call) for name, call in calls.items()}
    times = interleaved(calls, rounds)
    (tile_graph,) = made[0].report()["graphs"]
    steps = Counter(step["kind"] for step in tile_graph["steps"])
    ours = times["magweld"].min_ms
    return {
        "case": name,
        "first_call_s": first,
        "times": {name: t.as_dict() for name, t in times.items()},
        "kernels": steps["generated"],
        "torch": steps.total() - steps["generated"],
        "over": {n: t.min_ms / ours for n, t in times.items() if n != "magweld"},
    }


def show(results: Sequence[dict[str, Any]]) -> None:
    """Print the results as a table."""
    names = list(results[0]["times"])
    table = Table(
        "case",
        *(f"{name} us" for name in names),
        *(f"x {name}" for name in names if name != "magweld"),
        "kernels",
        "torch",
        "first call s",
    )
    for result in results:
        table.add_row(
            result["case"],
            *(f"{result['times'][name]['min_ms'] * 1e3:.0f}" for name in names),
            *(f"{ratio:.2f}" for ratio in result["over"].values()),
            str(result["kernels"]),
            str(result["torch"]),
            f"{result['first_call_s']['magweld']:.1f}",
        )
    Console(width=120).print(table)


def main() -> None:
    """Run the chosen cases."""
    torch.manual_seed(0)
    every = cases()
    options = benchmark_options(__doc__, every, 200, __file__)
    peer = not options.no_torch_compile
    with torch.no_grad():
        runs = (
            run_case(name, every[name], options.rounds, peer) for name in options.cases
        )
        show(reported(runs, options, show))


if __name__ == "__main__":
    main()
