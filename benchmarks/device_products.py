"""Predicted times of matrix products on GPUs, without one.

    python benchmarks/device_products.py [--sizes N ...] [--devices D ...] [-o FILE]

For each size, type and device: the tile and the steps that are held, as planned, the
predicted time, and the share of the device's fastest instruction for the type that this
is. What it is made of: seconds of each memory level and of matrix instructions, if
nothing else were waited for. They are those of devices.toml and of the planner's model;
nothing here was measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from reporting import DTYPES, report_file, write_report
from rich.console import Console
from rich.table import Table
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.bindings import ir
from magweld.compiler import lower_to_tiles
from magweld.context import make_context
from magweld.device_compiler import device_options
from magweld.importer.importer import import_graph
from magweld.passes.analysis.summary import summarize
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.ir.utils import find_function
from magweld.targets import device, parse_target


@dataclass(frozen=True)
class Predicted:
    """A square product as planned for a device.

    Attributes:
        size: Rows, columns and steps.
        dtype: Of factors and result.
        device: Its name.
        tile: Of the longest kernel; sums of parts of a reduction are another one.
        stages: Steps of the operands that are held.
        seconds: Predicted time of all kernels.
        share: Of the arithmetic of the fastest instruction for the type.
        shares: Seconds of each part of the device, of the longest kernel.
    """

    size: int
    dtype: str
    device: str
    tile: tuple[int, ...]
    stages: int
    seconds: float
    share: float
    shares: dict[str, float]


def predicted(size: int, dtype: str, name: str) -> Predicted:
    """Plan a product of size x size matrices."""
    inputs = [torch.empty(size, size, dtype=DTYPES[dtype]) for _ in range(2)]
    with torch.no_grad():
        graph = make_fx(torch.matmul, tracing_mode="fake")(*inputs)
    one = device(name)
    chip = "nvvm:sm_80" if one.warp == 32 else "rocdl:gfx942"
    target = parse_target(f"{chip}@{name}")
    text = import_graph(graph, inputs, device=torch.device("meta")).text
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        lower_to_tiles(module, device_options(target), Phase.SCHEDULED, target=target)
        steps = asdict(summarize(find_function(module.operation, "main")))["steps"]
    plans = [step["plan"] for step in steps]
    plan = max(plans, key=lambda one: float(one["predicted_seconds"]))
    fastest = max(
        (one.peak(dtype) or one.peak_gflops),
        *(i.gflops for i in one.instructions if i.operand == dtype),
    )
    seconds = sum(float(one["predicted_seconds"]) for one in plans)
    return Predicted(
        size,
        dtype,
        name,
        tuple(plan["tile"]),
        int(plan.get("copy_stages") or 1),
        seconds,
        2 * size**3 / seconds / (fastest * 1e9),
        {part: float(s) for part, s in plan["predicted_shares"].items()},
    )


def rows(one: Predicted) -> Iterator[str]:
    """Yield the cells of a row."""
    yield from (f"{one.size}", one.dtype, one.device)
    yield "x".join(map(str, one.tile))
    yield from (f"{one.stages}", f"{one.seconds * 1e6:.0f}")
    yield f"{2 * one.size**3 / one.seconds / 1e12:.0f}"
    yield f"{one.share:.0%}"
    yield ", ".join(f"{part} {s * 1e6:.0f}" for part, s in one.shares.items())


def main() -> None:
    """Plan the products that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="*", type=int, default=[1024, 4096])
    parser.add_argument("--dtypes", nargs="*", choices=list(DTYPES), default=["bf16"])
    parser.add_argument(
        "--devices", nargs="*", default=["a100", "h100", "h200", "mi250x", "mi300x"]
    )
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    found = [
        predicted(size, dtype, name)
        for size in options.sizes
        for dtype in options.dtypes
        for name in options.devices
    ]
    head = ("size", "type", "device", "tile", "stages", "us", "TFLOP/s", "of fastest")
    table = Table(*head, "us of each part")
    for one in found:
        table.add_row(*rows(one))
    Console(width=150).print(table)
    results: list[dict[str, Any]] = [asdict(one) for one in found]
    write_report(options.o, 1, results)


if __name__ == "__main__":
    main()
