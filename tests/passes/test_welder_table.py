"""The numbers of the Welder paper, and its table of what is fused, for our policy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from operator_models import device
from welder_groups import (
    CONVOLUTION,
    Shape,
    add_norm,
    attention,
    conv_relu_pool,
    convolution_pointwise,
    convolutions,
    layers,
    norm_linear,
    pointwise_depthwise,
    scores,
    window,
)

from magweld.passes.tiling.cost import Cost, cost
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.policy import schedule, staged_step
from magweld.passes.tiling.propagation import Refusal, Tiles, propagate
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets import Device
from magweld.targets import device as named_device

PAPER_SHARED = 49152  # static shared memory, all that the paper's code uses


def v100(shared: int = PAPER_SHARED) -> Device:
    found = named_device("v100")
    levels = tuple(
        replace(level, capacity=shared) if level.name == "shared" else level
        for level in found.levels
    )
    return replace(found, levels=levels)


def price(group: Group, tile: Shape, target: Device, level: str, step: int) -> Cost:
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    return cost(group, tiles, target, target.level(level), step)


@pytest.mark.parametrize("with_softmax", [False, True])
@pytest.mark.parametrize(
    ("tile", "footprint", "grid", "megabytes"),
    [((4, 128), 35840, 24576, 840), ((16, 128), 45056, 6144, 264)],
)
def test_the_numbers_of_the_paper(
    tile: Shape, footprint: int, grid: int, megabytes: int, with_softmax: bool
) -> None:
    group = scores(with_softmax=with_softmax)
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    assert (tiles.grid, tiles.recompute) == (grid, 1)
    # A cache holds operands and result whole, as the paper counts. Nothing that
    # softmax makes inside crosses a level, so the traffic is the same with it. It is
    # that of a cache from which every tile drives out what the one before had read.
    found = price(group, tile, device(tile_bytes=footprint), "l1", 64)
    assert found.traffic == footprint * grid == megabytes << 20
    if not with_softmax:
        assert found.footprint == footprint


def test_an_outer_cache_takes_most_of_that_traffic() -> None:
    # 32 KiB of keys stay in 6 MiB of l2: from DRAM they come once, not once a tile.
    found = price(scores(with_softmax=True), (16, 128), v100(), "shared", 32)
    queries, keys, shares = 98304 * 64 * 4, 64 * 128 * 4, 98304 * 128 * 4
    assert found.tile_traffic == 264 << 20
    assert found.traffic == queries + keys + shares


def test_a_result_has_space_of_its_own_beside_staged_operands() -> None:
    # 20 KiB in Welder, where the result takes over the space of the operands: its
    # code goes through registers with a barrier between. Ours computes into place.
    found = price(
        attention(768, 128, 64, values=False), (1, 32, 128), v100(), "shared", 32
    )
    staged, reuse = (32 * 32 + 32 * 128) * 4, 32 * 128 * 4
    assert staged == 20 * 1024
    assert found.footprint == staged + reuse


@dataclass(frozen=True)
class Row:
    """A row of the table of what Welder fuses, as its policy was simulated.

    Attributes:
        group: The operators.
        welder: Whether Welder has a tile with 48 KiB, and with 227 KiB.
        ours: The same of our policy.
        rule: Why not, "" if it fuses; of the smaller memory.
        why: The reason where the two differ.
    """

    group: Group
    welder: tuple[bool, bool]
    ours: tuple[bool, bool]
    rule: str = ""
    why: str = ""


BOTH, LARGE, NONE = (True, True), (False, True), (False, False)
HALO = "what tiles have in common is made again, which is a cost here, not forbidden"


TABLE = {
    "scores and softmax": Row(attention(768, 128, 64, values=False), BOTH, BOTH),
    "attention, 128": Row(attention(768, 128, 64), BOTH, BOTH),
    "attention of Swin, 49": Row(attention(12288, 49, 32), BOTH, BOTH),
    "attention of ViT, 50": Row(attention(384, 50, 64), BOTH, BOTH),
    "attention of MobileViT, 256": Row(attention(256, 256, 8), BOTH, BOTH),
    "attention, 512": Row(attention(512, 512, 64), LARGE, LARGE, "footprint"),
    "attention, 4096": Row(attention(16, 4096, 64), NONE, NONE, "footprint"),
    "NeRF": Row(layers(2073600, [*[64] * 7, 3]), BOTH, BOTH),
    "FFN, 768": Row(layers(8192, [768, 3072, 768]), NONE, NONE, "footprint"),
    "FFN, 384": Row(layers(3200, [384, 1536, 384]), LARGE, LARGE, "footprint"),
    "FFN, 96": Row(layers(200704, [96, 384, 96]), LARGE, LARGE, "footprint"),
    "product and norm, 96": Row(add_norm(200704, 96, 96), BOTH, BOTH),
    "product and norm, 144": Row(add_norm(65536, 144, 144), BOTH, BOTH),
    "product and norm, 384": Row(add_norm(3200, 384, 384), LARGE, LARGE, "footprint"),
    "product and norm, 768": Row(add_norm(8192, 768, 768), LARGE, LARGE, "footprint"),
    "norm and product, 96": Row(norm_linear(200704, 96, 288), BOTH, BOTH),
    "norm and product, 144": Row(norm_linear(65536, 144, 96), BOTH, BOTH),
    "norm and product, 768": Row(
        norm_linear(8192, 768, 2304),
        NONE,
        BOTH,
        why="a norm made again for each tile of columns is a cost here, not forbidden",
    ),
    "sum and norm, 768": Row(add_norm(8192, 768), BOTH, BOTH),
    "sum and norm, 8192": Row(add_norm(8192, 8192), LARGE, LARGE, "footprint"),
    "convolution and pooling": Row(conv_relu_pool(), BOTH, BOTH),
    "two convolutions": Row(
        convolutions(*[window(CONVOLUTION, (1, 64, 56, 56), (64,), 3)] * 2),
        NONE,
        LARGE,
        "footprint",
        HALO,
    ),
    "pointwise and depthwise, 56": Row(pointwise_depthwise(56), NONE, BOTH, why=HALO),
    "pointwise and depthwise, 28": Row(pointwise_depthwise(28), LARGE, BOTH, why=HALO),
    "pointwise and depthwise, 14": Row(pointwise_depthwise(14), BOTH, BOTH),
    "convolution and pointwise": Row(
        convolution_pointwise(64, 56, depthwise=False), BOTH, BOTH
    ),
    "depthwise and pointwise": Row(
        convolution_pointwise(384, 14, depthwise=True), BOTH, BOTH
    ),
}
LARGE_SHARED = 227 * 1024


@pytest.mark.parametrize("name", TABLE)
def test_what_is_fused_where_welder_fuses(name: str) -> None:
    row = TABLE[name]
    small, large = (
        schedule(row.group, v100(shared)) for shared in (PAPER_SHARED, LARGE_SHARED)
    )
    assert (isinstance(small, Plan), isinstance(large, Plan)) == row.ours
    assert (small.rule if isinstance(small, Refusal) else "") == row.rule
    # Every row in which the two differ says why.
    assert bool(row.why) == (row.welder != row.ours)


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("attention, 512", (1, 1, 64)),
        ("attention, 4096", (1, 1, 64)),
        ("FFN, 768", (1, 768)),
        ("FFN, 384", (1, 384)),
        ("product and norm, 384", (1, 384)),
        ("product and norm, 768", (1, 768)),
        ("sum and norm, 8192", (1, 8192)),
    ],
)
def test_without_recomputation_a_row_does_not_fit(name: str, tile: Shape) -> None:
    # A refusal tells of the smallest tile, which makes everything again. The smallest
    # that makes nothing again is a whole row, and that needs too much memory.
    group = TABLE[name].group
    tiles = propagate(group, tile)
    assert isinstance(tiles, Tiles)
    assert tiles.recompute == pytest.approx(1)
    needed = price(group, tile, v100(), "shared", staged_step(group)).footprint
    assert needed > PAPER_SHARED


def test_tiles_that_welder_quotes_fit() -> None:
    quoted = {
        "attention of Swin, 49": (1, 49, 32),
        "attention of ViT, 50": (1, 50, 64),
        "attention of MobileViT, 256": (1, 16, 8),
        "product and norm, 144": (16, 144),
        "norm and product, 144": (32, 96),
        "convolution and pooling": (1, 32, 4, 14),
    }
    for name, tile in quoted.items():
        group = TABLE[name].group
        found = price(group, tile, v100(), "shared", staged_step(group))
        assert found.footprint <= PAPER_SHARED, name


def test_a_quoted_tile_has_no_room_for_all_channels_with_their_border() -> None:
    # Welder reads windows where the image lies. Here the image of a window that hangs
    # over an edge is copied with all of its border, 5 x 11 for 3 x 9 of each channel.
    group = TABLE["depthwise and pointwise"].group
    tile = (1, 64, 1, 7)
    found = price(group, tile, v100(), "shared", staged_step(group))
    channels = group.nodes[0].writes[0].shape[1]
    assert found.footprint >= channels * 5 * 11 * 4 > PAPER_SHARED
