"""Tiled modules compute what the modules they come from compute, whatever the tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from magweld.bindings import ir
from magweld.dialects.device_attributes import device_attribute
from magweld.dialects.tile_graph import DEVICE, subgraphs_of, tile_attribute
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.policy import divisors
from magweld.passes.analysis.propagation import Refusal, propagate
from magweld.passes.base import FunctionPass
from magweld.passes.graph.form_tile_graph import FormTileGraph
from magweld.passes.phases import Phase
from magweld.passes.pipeline import Step
from magweld.passes.pipelines import graph_steps
from magweld.targets.device import Device, Level, LevelKind

GRAPHS = Path(__file__).parent / "graphs"
# Everything fits and memory is slow: what can be connected is.
ROOMY = Device(
    name="roomy",
    levels=(
        Level("global", 0, 1.0, 4, 1, LevelKind.EXPLICIT),
        Level("l1", 1 << 30, 1e4, 4, 1, LevelKind.CACHE),
        Level("register", 2048, 1e6, 4, 1, LevelKind.EXPLICIT),
    ),
    units=1,
    threads=1,
    warp=1,
    vector_bits=256,
    peak_gflops=1e6,
)
# Which divisor of an extent is the size of the tile, loop by loop and over again.
CHOICES = {"smallest": (0,), "first": (1, -1), "largest": (-2,), "last": (-1, 1)}


@dataclass(frozen=True)
class SetDevice(FunctionPass):
    """Plan graphs for a device that is in no catalogue."""

    name: ClassVar[str] = "set-device"

    def run_on_function(self, function: Any) -> None:
        function.attributes[DEVICE] = device_attribute(ROOMY)


@dataclass(frozen=True)
class ForceTiles(FunctionPass):
    """Write a tile to every subgraph whose operators can follow it."""

    name: ClassVar[str] = "force-tiles"
    choice: str = "smallest"

    def run_on_function(self, function: Any) -> None:
        for subgraph in subgraphs_of(function):
            body = read_body(subgraph)
            group = body.group(list(range(len(body.operators))))
            if not group.root.tileable:
                continue
            tile = tuple(self._sizes(group.root.whole_tile))
            if not isinstance(propagate(group, tile), Refusal):
                subgraph.attributes["tile"] = tile_attribute(tile)

    def _sizes(self, extents: Sequence[int]) -> Any:
        picks = CHOICES[self.choice]
        for loop, extent in enumerate(extents):
            possible = divisors(extent)
            pick = picks[loop % len(picks)]
            in_range = max(-len(possible), min(pick, len(possible) - 1))
            yield possible[in_range]


def steps(choice: str | None) -> list[Step]:
    """Return the steps from linalg to tiled kernels, tiles forced by `choice`."""
    phases = graph_steps("cpu", "never")
    found: list[Step] = [FormTileGraph("v100"), SetDevice()]
    for step in (*phases[Phase.SCHEDULED], *phases[Phase.TILED]):
        if choice is not None and step.name == "select-tiles":
            found.append(ForceTiles(choice))
        found.append(step)
    return found


Lower = Callable[[str, Sequence[Step]], ir.Module]


@pytest.mark.parametrize("choice", [None, *CHOICES])
@pytest.mark.parametrize("path", sorted(GRAPHS.glob("*.mlir")), ids=lambda p: p.stem)
def test_tiled_is_untiled(
    path: Path, choice: str | None, lower: Lower, evaluate: Any, inputs_of_main: Any
) -> None:
    plain = lower(path.read_text(), [])
    tiled = lower(path.read_text(), steps(choice))
    inputs = inputs_of_main(plain)
    expected, actual = evaluate(plain, inputs), evaluate(tiled, inputs)
    for left, right in zip(actual, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
