"""The walk from the best of thinned candidates: neighbours, and how far it gets."""

from __future__ import annotations

import itertools

import pytest
from operator_models import access, chain, loops

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.policy import MODEL_ACCURACY, Scheduler
from magweld.passes.tiling.refinement import across, along
from magweld.passes.tiling.regions import LinearIndex, OperatorKind, OperatorModel
from magweld.passes.tiling.tile_plan import Plan
from magweld.passes.tiling.tile_sizes import divisors
from magweld.targets import device as named_device

CHOICES = [(1, 2, 4), (1, 3), (5,)]


def test_along_one_loop_sizes_go_up_or_down() -> None:
    assert set(along((2, 1, 5), CHOICES)) == {(1, 1, 5), (4, 1, 5), (2, 3, 5)}


def test_across_loops_one_goes_up_and_another_down() -> None:
    assert set(across((2, 1, 5), CHOICES)) == {(1, 3, 5)}
    assert set(across((2, 3, 5), CHOICES)) == {(4, 1, 5)}
    assert not set(across((4, 3, 5), CHOICES))


def convolution(sizes: tuple[int, int, int, int]) -> Group:
    """A window of 3 x 3 over images, channels first, that keeps their sizes."""
    images, channels, high, wide = sizes
    rows, columns = (LinearIndex(((at, 1), (at + 3, 1))) for at in (2, 3))
    image = (images, channels, high + 2, wide + 2)
    node = OperatorModel(
        name="conv",
        kind=OperatorKind.CONVOLUTION,
        extents=(*sizes, channels, 3, 3),
        parallel=(0, 1, 2, 3),
        reads=(
            access(0, image, (*loops(0, 4), rows, columns)),
            access(1, (channels, channels, 3, 3), loops(1, 4, 5, 6)),
        ),
        writes=(access(0, sizes, loops(0, 1, 2, 3)),),
        flops=2,
    )
    return chain(node)


@pytest.mark.parametrize(
    ("device", "sizes"),
    [
        ("v100", (8, 128, 28, 28)),
        ("v100", (8, 256, 14, 14)),
        ("h100", (1, 128, 28, 28)),
    ],
)
def test_walk_ends_close_to_the_best_of_all_tiles(
    device: str, sizes: tuple[int, int, int, int]
) -> None:
    scheduler = Scheduler(named_device(device))
    group = convolution(sizes)
    chosen = scheduler.plan(group)
    assert isinstance(chosen, Plan)
    tiles = itertools.product(*map(divisors, sizes))
    plans = [scheduler.price(group, one, None) for one in tiles]
    best = min(plan.cost.seconds for plan in plans if isinstance(plan, Plan))
    assert chosen.cost.seconds <= best * (1 + MODEL_ACCURACY) ** 2
