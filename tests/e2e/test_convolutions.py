"""Convolutions in chains, compiled by the default backend, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

Compile = Callable[..., Any]
WIDTH = 6


def floats(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator)


EXPAND, REDUCE = floats(WIDTH, 4, 1, 1), floats(3, WIDTH, 1, 1, seed=1)
BIAS = floats(WIDTH, seed=2)


def between(window: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Put a window over channels between two convolutions of single points."""

    def chain(x: Tensor) -> Tensor:
        return F.conv2d(F.relu(window(F.conv2d(x, EXPAND))), REDUCE)

    return chain


def depthwise(
    *taps: int, stride: int | tuple[int, int] = 1, padding: Any = 0, dilation: int = 1
) -> Callable[[Tensor], Tensor]:
    weight = floats(WIDTH, 1, *taps, seed=3)
    return lambda x: F.conv2d(x, weight, BIAS, stride, padding, dilation, WIDTH)


def padded(mode: str) -> Callable[[Tensor], Tensor]:
    weight = floats(WIDTH, 1, 3, 3, seed=3)
    border = (1, 2, 2, 1)
    return lambda x: F.conv2d(F.pad(x, border, mode), weight, groups=WIDTH)


def grouped(groups: int) -> Callable[[Tensor], Tensor]:
    weight = floats(WIDTH, WIDTH // groups, 3, 3, seed=4) / 9  # sums stay near one
    return lambda x: F.conv2d(x, weight, padding=1, groups=groups)


def points(stride: int | tuple[int, int], padding: int = 0) -> Callable[..., Tensor]:
    weight = floats(WIDTH, WIDTH, 1, 1, seed=4) / 3
    return lambda x: F.conv2d(x, weight, BIAS, stride, padding)


WINDOWS: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": depthwise(3, 3),
    "padded": depthwise(3, 3, padding=1),
    "padded-far": depthwise(3, 3, padding=5),
    "large": depthwise(7, 7, padding=3),
    "uneven": depthwise(5, 2, padding=(1, 2)),
    "stride": depthwise(3, 3, stride=2, padding=1),
    "stride-uneven": depthwise(3, 3, stride=(1, 3), padding=1),
    "stride-skips": depthwise(1, 1, stride=4, padding=1),
    "dilation": depthwise(3, 3, padding=3, dilation=3),
    "same": depthwise(5, 5, padding="same"),
    "reflect": padded("reflect"),
    "replicate": padded("replicate"),
    "constant": padded("constant"),
    "groups": grouped(2),
    "full": grouped(1),
    "points": points(2),
    "points-uneven": points((3, 2)),
    "points-padded": points(2, padding=1),
    "max-pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "average-pool": lambda x: F.avg_pool2d(x, 3, 2, 1),
}


# Rows of several vectors and of one, edges in the last of several tiles.
IMAGES = ((2, 4, 14, 37), (1, 4, 21, 18))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_between_products(name: str, compiled: Compile, whole: bool) -> None:
    number = [*WINDOWS].index(name) % len(IMAGES)
    for shape in IMAGES if whole else (IMAGES[number],):
        checked = compiled(between(WINDOWS[name]), floats(*shape, seed=5))
        checked.compare(floats(*shape, seed=6))


def test_a_sequence_of_windows(compiled: Compile) -> None:
    weight = floats(4, 1, 9, seed=7)

    def chain(x: Tensor) -> Tensor:
        y = F.conv1d(torch.tanh(x), weight, padding=4, groups=4)
        return F.conv1d(y * y, weight, padding=8, dilation=2, groups=4)

    checked = compiled(chain, floats(2, 4, 40))
    checked.compare(floats(2, 4, 40, seed=1))


def test_the_image_is_read_beside_the_window(compiled: Compile) -> None:
    weight = floats(4, 1, 3, 3, seed=8)

    def residual(x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.sigmoid(x)
        return y + F.conv2d(y, weight, padding=1, groups=4), y

    checked = compiled(residual, floats(1, 4, 12, 20))
    checked.compare(floats(1, 4, 12, 20, seed=1))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("image", "taps", "stride", "dilation"),
    [((14, 14), 3, 1, 1), ((29, 15), 3, 2, 1), ((13, 27), 5, 1, 1), ((7, 7), 3, 1, 2)],
)
def test_norms_behind_convolutions_of_short_rows(
    image: tuple[int, int], taps: int, stride: int, dilation: int, compiled: Compile
) -> None:
    weight, points = floats(5, 1, taps, taps, seed=9), floats(9, 5, 1, 1, seed=10)
    numbers = [floats(5, seed=seed) for seed in range(11, 15)]

    def block(x: Tensor) -> Tensor:
        mean, variance, factor, bias = numbers
        border = dilation * (taps // 2)
        y = F.conv2d(x, weight, None, stride, border, dilation, 5)
        y = F.batch_norm(y, mean, variance.abs() + 0.5, factor, bias)
        return F.conv2d(F.relu6(y), points)

    checked = compiled(block, floats(2, 5, *image, seed=15))
    checked.compare(floats(2, 5, *image, seed=16))


@pytest.mark.sample(2)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [10, 13])
def test_images_that_are_copied_a_few_channels_at_a_time(
    stride: int, channels: int, compiled: Compile
) -> None:
    # With its border, such an image is more than a first cache holds.
    weight, bias = floats(channels, 1, 3, 3, seed=17), floats(channels, seed=18)

    def block(x: Tensor) -> Tensor:
        return F.relu6(F.conv2d(x, weight, bias, stride, 1, 1, channels))

    checked = compiled(block, floats(2, channels, 40, 40, seed=19))
    checked.compare(floats(2, channels, 40, 40, seed=20))
