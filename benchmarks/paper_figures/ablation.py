"""Kernels, traffic, intermediate bytes and predicted time with less and more fusion.

    python benchmarks/paper_figures/ablation.py [--cases NAME ...] [--batch N]
        [--devices NAME ...] [-o FILE]

Welder, Fig. 13. Models are planned for a device, not run: `none` is every operator in a
kernel of its own, `registers` connects what melts element by element, `all` is the
whole schedule. Bytes are those from and to the outermost memory of the device.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

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

FUSIONS = ("none", "registers", "all")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Plan the chosen models."""
    for name in chosen.cases:
        graph = imported_case(name, chosen.batch)
        for device in chosen.devices:
            for fusion in FUSIONS:
                plan = planned(graph, device, fusion)
                cells = {
                    "kernels": plan.kernels,
                    "through torch": plan.through_torch,
                    "moved MiB": mebibytes(plan.moved),
                    "intermediate MiB": mebibytes(plan.intermediate),
                    "predicted ms": milliseconds(plan),
                }
                yield f"{name} {device} {fusion}", cells


if __name__ == "__main__":
    report(rows, options(__doc__, __file__, CASES, batch=64))
