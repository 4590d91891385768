"""Models planned for several accelerators from their device files.

    python benchmarks/paper_figures/accelerators.py [--cases NAME ...] [--batch N]
        [--devices NAME ...] [-o FILE]

Welder, Fig. 15 (MI50) and its IPU. Models are planned, not run: `gain` is how many
times as fast the whole schedule is predicted to be as one that connects only what melts
element by element.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from model_plans import (
    CASES,
    Row,
    imported_case,
    mebibytes,
    milliseconds,
    options,
    planned,
    report,
)

IPU = f"{Path(__file__).with_name('ipu.toml')}#ipu"
DEVICES = ("v100", "mi50", "h100", IPU)


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Plan the chosen models."""
    for name in chosen.cases:
        graph = imported_case(name, chosen.batch)
        for device in chosen.devices:
            less, more = (planned(graph, device, f) for f in ("registers", "all"))
            cells = {
                "kernels, registers": less.kernels,
                "kernels": more.kernels,
                "moved MiB, registers": mebibytes(less.moved),
                "moved MiB": mebibytes(more.moved),
                "predicted ms": milliseconds(more),
                "gain": less.seconds / more.seconds,
            }
            yield f"{name} {device.rpartition('#')[2]}", cells


if __name__ == "__main__":
    report(rows, options(__doc__, __file__, CASES, batch=1, devices=DEVICES))
