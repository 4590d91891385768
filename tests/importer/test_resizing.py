"""Operators that enlarge images, taken apart so that they can be tiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

IMAGE = torch.randn(2, 3, 5, 4)
WEIGHT = torch.randn(3, 2, 2, 2)
BIAS = torch.randn(2)


def resized(mode: str, **options: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: F.interpolate(x, mode=mode, **options)


def deconvolved(*weight: int, **options: Any) -> Callable[[Tensor], Tensor]:
    kernel = torch.linspace(-1, 1, torch.Size(weight).numel()).view(weight)
    return lambda x: F.conv_transpose2d(x, kernel, **options)


APART: dict[str, Callable[[Tensor], Tensor]] = {
    "nearest": resized("nearest", scale_factor=2),
    "nearest-half": lambda x: F.interpolate(x.half(), scale_factor=2),
    "nearest-size": resized("nearest", size=(5, 16)),
    "bilinear": resized("bilinear", scale_factor=2),
    "bilinear-four": resized("bilinear", scale_factor=(4, 1)),
    "bilinear-size": resized("bilinear", size=(20, 8)),
    "transposed": deconvolved(3, 2, 2, 2, stride=2),
    "transposed-uneven": deconvolved(3, 2, 3, 1, stride=(3, 1)),
    "transposed-bias": lambda x: F.conv_transpose2d(x, WEIGHT, BIAS, stride=2),
}
WHOLE: dict[str, Callable[[Tensor], Tensor]] = {
    "nearest-three": resized("nearest", scale_factor=3),
    "nearest-odd": resized("nearest", size=(7, 7)),
    "nearest-scale": resized("nearest", scale_factor=(1.9, 2.1)),
    "bilinear-corners": resized("bilinear", scale_factor=2, align_corners=True),
    "transposed-meeting": deconvolved(3, 2, 3, 3, stride=2),
    "transposed-groups": lambda x: F.conv_transpose2d(
        x[:, :2], WEIGHT[:2], stride=2, groups=2
    ),
    "transposed-padded": deconvolved(3, 2, 2, 2, stride=2, padding=1),
    "bilinear-half": lambda x: F.interpolate(x.half(), scale_factor=2, mode="bilinear"),
}


@pytest.mark.parametrize("name", APART)
def test_taken_apart(name: str, check: Callable[..., Any]) -> None:
    reference = check(APART[name], IMAGE, tileable=True)
    assert not reference.imported.externals
    assert check(APART[name], IMAGE).imported.externals


@pytest.mark.parametrize("name", WHOLE)
def test_left_to_torch_where_positions_are_no_whole_factors(
    name: str, check: Callable[..., Any]
) -> None:
    assert check(WHOLE[name], IMAGE, tileable=True).imported.externals


def test_plain_convolutions_are_as_ever(check: Callable[..., Any]) -> None:
    weight = torch.randn(4, 3, 3, 3)
    reference = check(lambda x: F.conv2d(x, weight, BIAS.repeat(2)), IMAGE)
    tiled = check(lambda x: F.conv2d(x, weight, BIAS.repeat(2)), IMAGE, tileable=True)
    assert tiled.imported.text == reference.imported.text
