"""Networks on large images whose tensors lie in the memory of the machine.

    python benchmarks/paper_figures/host_memory.py [--cases NAME ...]
        [--devices NAME ...] [-o FILE]

Welder, Table 7. Models are planned, not run: the outermost memory of the device is that
of the machine around it, over the link of the device. `registers` connects only what
melts element by element; the whole schedule keeps tiles in the memory of the device and
further inwards. A case is a network and the side of its image, batch 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from accelerators import IPU
from memory_budget import vgg16
from model_plans import CASES, Row, imported, mebibytes, options, planned, report
from torch import nn


@dataclass(frozen=True)
class Network:
    """A network and its image."""

    make: Callable[[], nn.Module]
    side: int


NETWORKS = {
    f"{name}-{side}": Network(make, side)
    for name, make in (("unet", CASES["unet"].build), ("vgg16", vgg16))
    for side in (2048, 8192)
}
DEVICES = ("v100+host", f"{IPU}+host")


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Plan the chosen networks."""
    for name in chosen.cases:
        network = NETWORKS[name]
        image = torch.empty(chosen.batch, 3, network.side, network.side)
        graph = imported(network.make, (image,))
        for device in chosen.devices:
            less, more = (planned(graph, device, f) for f in ("registers", "all"))
            cells = {
                "through torch": more.through_torch,
                "host MiB, registers": mebibytes(less.moved),
                "host MiB": mebibytes(more.moved),
                "transfers less": less.moved / more.moved,
                "predicted s": more.seconds,
                "gain": less.seconds / more.seconds,
            }
            yield f"{name} {device.rpartition('#')[2]}", cells


if __name__ == "__main__":
    report(rows, options(__doc__, __file__, NETWORKS, batch=1, devices=DEVICES))
