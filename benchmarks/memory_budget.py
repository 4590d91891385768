"""Peak memory, time and results of networks on large images, eager and in a budget.

Each run is a process of its own. What counts is how much the resident memory of the
process grows from before the first call to its peak; inputs and parameters are there
before, the result is part of it. `budget` bounds all but the result.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from reporting import report_file, reported
from timing import seconds_of
from torch import Tensor, fx, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import torchvision_schemas

from magweld.api import CompiledGraph, compile_graph
from magweld.compiler_options import CompileOptions, parse_bytes
from magweld.frontend import trace

SMALL = 64
MEBIBYTE = 1 << 20
# Side of the parts of an image that are compared, and how far a border reaches.
PART = 1024
MARGIN = 256


def twice(inputs: int, outputs: int) -> nn.Sequential:
    """Return two convolutions with their activations."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """Down four times and up again, with padding, so that sizes stay powers of two."""

    def __init__(self, base: int, depth: int = 4, classes: int = 2) -> None:
        """Take the channels of the first level; each level has twice as many."""
        super().__init__()
        widths = [base * 2**level for level in range(depth + 1)]
        inner = widths[::-1]
        pairs = list(itertools.pairwise(inner))
        self.down = nn.ModuleList(
            twice(i, o) for i, o in zip([3, *widths], widths, strict=False)
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, stride=2) for i, o in pairs)
        self.merge = nn.ModuleList(twice(i, o) for i, o in pairs)
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class and point."""
        kept: list[Tensor] = []
        for down in self.down:
            x = down(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        kept.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([kept.pop(), up(x)], 1))
        scores: Tensor = self.head(x)
        return scores


def vgg16() -> nn.Module:
    """Return the convolutions of torchvision's network, with random weights."""
    library = torchvision_schemas.declare()
    import torchvision

    features: nn.Module = torchvision.models.vgg16(weights=None).features
    features.declarations = library  # type: ignore[assignment]
    return features


@dataclass(frozen=True)
class Case:
    """A network, the side of its image, and the memory that it gets.

    Attributes:
        make: Makes the network.
        side: Height and width of the image.
        budget: As `magweld.frontend.trace` takes it.
        eager: Whether this machine has the memory for an eager run.
    """

    make: Callable[[], nn.Module]
    side: int
    budget: str
    eager: bool = True


CASES = {
    "vgg16 2048": Case(vgg16, 2048, "1GiB"),
    "vgg16 4096": Case(vgg16, 4096, "2GiB", eager=False),
    "unet-8 4096": Case(lambda: UNet(8), 4096, "512MiB"),
    "unet-16 2048": Case(lambda: UNet(16), 2048, "256MiB"),
}


@dataclass(frozen=True)
class Run:
    """What one process found.

    Attributes:
        peak: Bytes by which its resident memory grew.
        seconds: Of the call.
        planned: Bytes that were planned, without the result; 0 for eager.
        result: Bytes of the result.
        tiled: Tiles of the tensors that were made tile by tile.
    """

    peak: int
    seconds: float
    planned: int
    result: int
    tiled: list[list[int]]


def compiled(model: nn.Module, x: Tensor, budget: str) -> Callable[[], Tensor]:
    """Capture a network on a small image and compile it for a large one.

    The call that is monitored is an ordinary run, which has to fit as well.
    """
    found: list[tuple[fx.GraphModule, list[Tensor]]] = []

    def keep(graph: fx.GraphModule, inputs: list[Tensor]) -> fx.GraphModule:
        found.append((graph, inputs))
        return graph

    small = torch.randn(1, 3, SMALL, SMALL)
    trace(model, backend=keep)(small)
    ((graph, inputs),) = found
    large = [x if tensor.shape == small.shape else tensor for tensor in inputs]
    options = CompileOptions(memory_budget=parse_bytes(budget))
    made = compile_graph(graph, large, options=options)
    assert isinstance(made, CompiledGraph)
    return Compiled(made, large)


@dataclass(frozen=True)
class Compiled:
    """A compiled network with its inputs."""

    graph: CompiledGraph
    inputs: list[Tensor]

    def __call__(self) -> Tensor:
        """Return the first result."""
        result: Tensor = self.graph(*self.inputs)[0]
        return result


def run_once(name: str, mode: str, output: Path) -> Run:
    """Run a case in this process, which has run nothing before."""
    case = CASES[name]
    torch.manual_seed(0)
    model = case.make().eval()
    x = torch.randn(1, 3, case.side, case.side)
    memory: dict[str, Any] = {}
    call: Callable[[], Tensor] = partial(model, x)
    if mode == "magweld":
        call = compiled(model, x, case.budget)
        assert isinstance(call, Compiled)
        memory = call.graph.report()["memory"]
    results: list[Tensor] = []
    before = resident()
    seconds = seconds_of(lambda: results.append(call()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    torch.save(results[0], output)
    parts = ("arena", "transient", "scratch")
    planned = sum(memory.get(f"{part}_bytes", 0) for part in parts)
    tiled = [entry["tile"] for entry in memory.get("tiled", ())]
    return Run(peak - before, seconds, planned, results[0].nbytes, tiled)


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def in_process(name: str, mode: str, threads: int, output: Path) -> Run:
    """Run a case in a process of its own."""
    words = [sys.executable, __file__, "--run", name, mode, str(output)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(words, env=environment, check=True, capture_output=True)
    *_, line = done.stdout.decode().splitlines()
    return Run(**json.loads(line))


def difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference as a share of the largest element."""
    return float((found - expected).abs().max() / expected.abs().max())


def by_parts(name: str, found: Tensor) -> float:
    """Compare corners and middle of a result with eager runs on parts of the image.

    For networks that have no memory for an eager run: away from its own border a part
    of the image gives what the whole image gives.
    """
    case = CASES[name]
    torch.manual_seed(0)
    model = case.make().eval()
    x = torch.randn(1, 3, case.side, case.side)
    factor = case.side // found.shape[-1]
    size, margin = PART // factor, MARGIN // factor
    worst = 0.0
    for y in (0, found.shape[-1] // 2, found.shape[-1] - size):
        at, inside = y * factor, slice(margin if y else 0, None)
        part = model(x[:, :, at : at + PART, at : at + PART])[:, :, inside, inside]
        mine = found[:, :, y : y + size, y : y + size][:, :, inside, inside]
        # Where the part ends within the image it is padded, which the image is not.
        end = None if y == found.shape[-1] - size else -margin
        part, mine = part[:, :, :end, :end], mine[:, :, :end, :end]
        worst = max(worst, difference(mine, part))
    return worst


def measure(name: str, threads: int, folder: Path) -> dict[str, Any]:
    """Return the figures of a case, and print them."""
    case = CASES[name]
    mine, theirs = folder / "magweld.pt", folder / "eager.pt"
    result: dict[str, Any] = {"case": name, "budget": parse_bytes(case.budget)}
    result["magweld"] = asdict(in_process(name, "magweld", threads, mine))
    with torch.no_grad():
        if case.eager:
            result["eager"] = asdict(in_process(name, "eager", threads, theirs))
            result["difference"] = difference(torch.load(mine), torch.load(theirs))
        else:
            result["difference"] = by_parts(name, torch.load(mine))
    result["cells"] = cells(result)
    print(row(result), flush=True)
    return result


def cells(result: dict[str, Any]) -> dict[str, float | int]:
    """Return what a table of the report shows of a case, by column."""
    found: dict[str, float | int] = {"budget MiB": result["budget"] / MEBIBYTE}
    for mode in ("eager", "magweld"):
        if mode in result:
            found[f"{mode} MiB"] = result[mode]["peak"] / MEBIBYTE
            found[f"{mode} s"] = result[mode]["seconds"]
    mine = result["magweld"]
    return found | {
        "result MiB": mine["result"] / MEBIBYTE,
        "tiled tensors": len(mine["tiled"]),
        "difference": result["difference"],
    }


def row(result: dict[str, Any]) -> str:
    """Return a line of the table."""
    cells = [result["case"], f"{result['budget'] / MEBIBYTE:.0f}"]
    for mode in ("eager", "magweld"):
        run = result.get(mode)
        cells += (
            [f"{run['peak'] / MEBIBYTE:.0f}", f"{run['seconds']:.1f}"]
            if run
            else 2 * ["-"]
        )
    mine = result["magweld"]
    cells += [
        f"{mine['planned'] / MEBIBYTE:.0f}",
        f"{mine['result'] / MEBIBYTE:.0f}",
        str(len(mine["tiled"])),
        f"{result['difference']:.1e}",
    ]
    return "".join(cell.rjust(13) for cell in cells)


HEADINGS = (
    "case",
    "budget MiB",
    "eager MiB",
    "eager s",
    "magweld MiB",
    "magweld s",
    "planned MiB",
    "result MiB",
    "tiled",
    "difference",
)


def main() -> None:
    """Measure the chosen cases and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        name, mode, output = options.run
        with torch.no_grad():
            print(json.dumps(asdict(run_once(name, mode, Path(output)))))
        return
    print("".join(heading.rjust(13) for heading in HEADINGS))
    with tempfile.TemporaryDirectory() as folder:
        runs = (measure(n, options.threads, Path(folder)) for n in options.cases)
        reported(runs, options)


if __name__ == "__main__":
    main()
