"""What fusion is predicted to gain as inputs grow.

    python benchmarks/paper_figures/input_sizes.py [--cases NAME ...] [--batch N]
        [--devices NAME ...] [-o FILE]

Welder, Fig. 14: NAFNet on larger images, BERT and Conformer on longer sequences. Models
are planned, not run: `gain` is how many times as fast the whole schedule is predicted
to be as one that connects only what melts element by element.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch
from model_plans import (
    CASES,
    Inputs,
    Row,
    imported,
    mebibytes,
    milliseconds,
    options,
    planned,
    report,
)

SIZES = {
    "nafnet": (64, 128, 256, 512),
    "bert-base": (64, 128, 256, 512),
    "conformer": (128, 256, 512, 1024),
}


def sized(name: str, batch: int, size: int) -> Inputs:
    """Return inputs that are never read: images, token numbers or spectra."""
    if name == "nafnet":
        return (torch.empty(batch, 3, size, size),)
    if name == "conformer":
        return (torch.empty(batch, size, 80),)
    return tuple(torch.empty(batch, size, dtype=torch.int64) for _ in range(2))


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Plan the chosen models."""
    for name in chosen.cases:
        for size in SIZES[name]:
            graph = imported(CASES[name].build, sized(name, chosen.batch, size))
            for device in chosen.devices:
                less, more = (planned(graph, device, f) for f in ("registers", "all"))
                cells = {
                    "kernels": more.kernels,
                    "moved MiB, registers": mebibytes(less.moved),
                    "moved MiB": mebibytes(more.moved),
                    "predicted ms": milliseconds(more),
                    "gain": less.seconds / more.seconds,
                }
                yield f"{name} {size} {device}", cells


if __name__ == "__main__":
    report(rows, options(__doc__, __file__, SIZES, batch=8))
