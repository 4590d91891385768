"""Reductions over two to eight elements of pairs of rows, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld import frontend

Case = tuple[Callable[..., Any], tuple[Tensor, ...]]

POINTS, OTHERS = torch.randn(140, 3), torch.randn(150, 3)
BOXES = torch.rand(130, 2).repeat(1, 2) + torch.tensor([0, 0, 0.2, 0.3])


def overlaps(boxes: Tensor) -> Tensor:
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    return (shared / (area[:, None] + area[None] - shared)).amax(1)


def by_columns(boxes: Tensor) -> Tensor:
    left, _, right, _ = boxes.unbind(1)
    width = torch.minimum(right[:, None], right) - torch.maximum(left[:, None], left)
    return width.clamp(min=0).sum(1)


def forces(points: Tensor) -> tuple[Tensor, Tensor]:
    """The differences are read twice: by a sum, and by what is divided by it."""
    apart = points[:, None] - points[None]
    squares = (apart * apart).sum(-1) + 0.5
    return (apart / squares[..., None]).sum(1), squares


CASES: dict[str, Case] = {
    "distances": (
        lambda p, q: ((p[:, None] - q) ** 2).sum(-1).sqrt(),
        (POINTS, OTHERS),
    ),
    "doubles": (
        lambda p, q: (p[:, None] - q).abs().mean(-1),
        (POINTS.double(), OTHERS.double()),
    ),
    "integers": (
        lambda p, q: (p[:, None] - q).abs().sum(-1),
        ((POINTS * 9).long(), (OTHERS * 9).long()),
    ),
    "largest": (lambda p, q: (p[:, None] - q).abs().amax(-1), (POINTS, OTHERS)),
    "not-a-number": (
        lambda p, q: (p[:, None] * q).amin(-1),
        (POINTS, OTHERS.clone().index_fill_(0, torch.tensor([7]), float("nan"))),
    ),
    "any": (lambda p, q: (p[:, None] > q).any(-1), (POINTS, OTHERS)),
    "batches": (
        lambda p, q: ((p[:, :, None] - q[:, None]) ** 2).sum(-1).amin(2),
        (POINTS.view(4, 35, 3), OTHERS.view(6, 25, 3)[:4]),
    ),
    "overlaps": (overlaps, (BOXES,)),
    "columns": (by_columns, (BOXES,)),
    "forces": (forces, (POINTS,)),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_eager(name: str) -> None:
    function, inputs = CASES[name]
    fast = frontend.trace(function, compile="now")
    fast(*inputs)
    torch.testing.assert_close(
        fast(*inputs), function(*inputs), rtol=1e-5, atol=1e-5, equal_nan=True
    )
    assert not fast.stats()["torch_hits"]
