"""The tiles of an extent that a call tells."""

from __future__ import annotations

import itertools

import pytest

from magweld.dialects.tile_graph import RuntimeTiles, runtime_loops, runtime_steps


@pytest.mark.parametrize("step", [1, 2, 4, 8, 16, 32, 64, 128, 512])
def test_steps_divide_each_other_down_to_one(step: int) -> None:
    steps = runtime_steps(step)
    assert steps[0] == step
    assert steps[-1] == 1
    assert len(steps) <= 5
    assert all(a % b == 0 and a > b for a, b in itertools.pairwise(steps))


@pytest.mark.parametrize("step", [1, 2, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("extent", [0, 1, 2, 3, 7, 31, 32, 33, 64, 100, 257, 2**33 + 5])
def test_loops_cover_each_row_once(step: int, extent: int) -> None:
    end = 0
    for loop, size in zip(
        runtime_loops(extent, step), runtime_steps(step), strict=True
    ):
        assert loop.start == end
        assert loop.step == size
        assert (loop.end - loop.start) % size == 0
        end = loop.end
    assert end == extent


def test_tiles_are_counted() -> None:
    tiles = RuntimeTiles(extent=37, step=8, beside=2)
    assert tiles.count(37) == 2 * (4 + 1 + 1)
    assert tiles.count(39) == 2 * (4 + 1 + 1 + 1)
    assert tiles.count(0) == 0
