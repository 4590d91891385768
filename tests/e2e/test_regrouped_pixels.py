"""Images whose pixels are put in another order, every second one, against eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from magweld import frontend


def patches(x: Tensor) -> Tensor:
    """Neighbours of 2 by 2 pixels side by side, channels last."""
    n, c, h, w = x.shape
    y = x.view(n, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 3, 5, 1)
    return y.reshape(n, h * w // 4, 4 * c)


def phases(x: Tensor) -> Tensor:
    """Four images of every second pixel, channels last."""
    n, c, h, w = x.shape
    y = x.view(n, c, h // 2, 2, w // 2, 2).permute(0, 3, 5, 2, 4, 1)
    return y.reshape(n, 4, h * w // 4, c)


@pytest.mark.sample(6)
@pytest.mark.parametrize("function", [patches, phases])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
@pytest.mark.parametrize("shape", [(2, 48, 32, 32), (1, 19, 6, 54), (3, 8, 2, 16)])
def test_order_of_pixels(
    function: Callable[[Tensor], Tensor], dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    x = torch.randint(-99, 99, shape).to(dtype)
    traced = frontend.trace(function)
    traced(x)
    assert torch.equal(traced(x), function(x))
    assert traced.stats()["hits"] == 1
