"""Tiled modules compute what the modules they come from compute, whatever the tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from magweld.bindings import ir
from magweld.dialects.device_attributes import device_attribute
from magweld.dialects.tile_graph import DEVICE, grid_parts, set_tile, subgraphs_of
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.stream_marks import STEP, mark_stream
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Step
from magweld.passes.pipelines.middle import graph_steps
from magweld.passes.tile.form_tile_graph import FormTileGraph
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Refusal, propagate
from magweld.passes.tiling.stream import Blocks, Stream
from magweld.passes.tiling.streaming import streams
from magweld.passes.tiling.tile_sizes import divisors
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
# Over what an extent is divided for the size of the tile, likewise.
RAGGED = {"halves": (2,), "thirds": (3, 2), "most": (1.2, 1), "rest": (1, 1.5)}


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
    block: int | None = None

    def run_on_function(self, function: Any) -> None:
        for subgraph in subgraphs_of(function):
            body = read_body(subgraph)
            group = body.group(list(range(len(body.operators))))
            if not group.root.tileable:
                continue
            tile = tuple(self._sizes(group.root.whole_tile))
            blocks = self._blocks(group)
            parts = grid_parts(group.root.whole_tile, tile)
            sizes = (tuple(loop.step for loop in part) for part in parts)
            if any(isinstance(propagate(group, s, blocks), Refusal) for s in sizes):
                continue
            set_tile(subgraph, tile)
            stream = None if blocks is None else blocks.stream
            mark_stream(body, list(range(len(body.operators))), group, stream)
            if blocks is not None:
                number = ir.IntegerType.get_signless(64)
                subgraph.attributes[STEP] = ir.IntegerAttr.get(number, blocks.size)

    def _blocks(self, group: Group) -> Blocks | None:
        ways = [way for way in streams(group) if isinstance(way, Stream)]
        return Blocks(ways[0], self.block) if ways and self.block else None

    def _sizes(self, extents: Sequence[int]) -> Any:
        if self.choice in RAGGED:
            shares = RAGGED[self.choice]
            for loop, extent in enumerate(extents):
                yield math.ceil(extent / shares[loop % len(shares)])
            return
        picks = CHOICES[self.choice]
        for loop, extent in enumerate(extents):
            possible = divisors(extent)
            pick = picks[loop % len(picks)]
            in_range = max(-len(possible), min(pick, len(possible) - 1))
            yield possible[in_range]


def steps(choice: str | None, block: int | None = None) -> list[Step]:
    """Return the steps from linalg to tiled kernels, tiles forced by `choice`.

    Args:
        choice: Which tiles; None for those of the scheduler.
        block: Size of the blocks of what can be streamed; None for nothing streamed.
    """
    phases = graph_steps("cpu", "never")
    found: list[Step] = [FormTileGraph("v100"), SetDevice()]
    order = (Phase.SCHEDULED, Phase.PLANNED, Phase.TILED)
    for step in (step for phase in order for step in phases[phase]):
        if choice is not None and step.name == "select-tiles":
            found.append(ForceTiles(choice, block))
        found.append(step)
    return found


Lower = Callable[[str, Sequence[Step]], ir.Module]
Case = tuple[list[Any], list[Any]]


@pytest.fixture
def untiled(
    untiled_cases: dict[Path, Case], lower: Lower, evaluate: Any, inputs_of_main: Any
) -> Callable[[Path], Case]:
    """Return the inputs of a graph and what they give as it is, computed once."""

    def find(path: Path) -> Case:
        if path not in untiled_cases:
            plain = lower(path.read_text(), [])
            inputs = inputs_of_main(plain)
            untiled_cases[path] = inputs, evaluate(plain, inputs)
        return untiled_cases[path]

    return find


@pytest.fixture(scope="module")
def untiled_cases() -> dict[Path, Case]:
    return {}


FORCED = [*CHOICES, *RAGGED]
PATHS = sorted(GRAPHS.glob("*.mlir"))


@pytest.mark.sample(110)
@pytest.mark.parametrize("choice", [None, *FORCED])
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_tiled_is_untiled(
    path: Path,
    choice: str | None,
    lower: Lower,
    evaluate: Any,
    untiled: Callable[[Path], Case],
    whole: bool,
) -> None:
    # Each graph has one kind of divisors and one of others, each choice a quarter.
    other = choice is not None and (PATHS.index(path) + FORCED.index(choice)) % 4
    if other and not whole:
        pytest.skip("a case of `--whole`")
    tiled = lower(path.read_text(), steps(choice))
    inputs, expected = untiled(path)
    for left, right in zip(evaluate(tiled, inputs), expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


STREAMED = sorted(GRAPHS.glob("stream_*.mlir"))
BLOCKS = (1, 4, 12, 13)


@pytest.mark.sample(55)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("choice", FORCED)
@pytest.mark.parametrize("path", STREAMED, ids=lambda p: p.stem)
def test_streamed_is_whole(
    path: Path,
    choice: str,
    block: int,
    lower: Lower,
    evaluate: Any,
    untiled: Callable[[Path], Case],
    whole: bool,
) -> None:
    # A third has each two of the three together.
    number = STREAMED.index(path) + FORCED.index(choice) + BLOCKS.index(block)
    if number % len(STREAMED) and not whole:
        pytest.skip("a case of `--whole`")
    tiled = lower(path.read_text(), steps(choice, block))
    assert (block == 13) or "scf.for " in str(tiled)
    inputs, expected = untiled(path)
    for left, right in zip(evaluate(tiled, inputs), expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
