"""Dimensions of extent one, which reshapes add, in kernels of several operators."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from magweld import frontend


def floats(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def centred(x: Tensor) -> Tensor:
    """Square sums over dimensions of which two have one element."""
    rows = x.view(1, x.shape[0], x.shape[1], 1)
    return (rows - rows.mean((0, 2, 3), keepdim=True)).pow(2).sum((0, 2, 3))


CASES: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    # Torch has batches and channels of these in one dimension, behind one of extent 1.
    "instances of rows": (nn.InstanceNorm1d(3), floats(2, 3, 7)),
    "instances of images": (nn.InstanceNorm2d(3, affine=True), floats(2, 3, 8, 8)),
    "groups of one channel": (nn.GroupNorm(4, 4), floats(3, 4, 6)),
    "square sums": (centred, floats(6, 5)),
    "begin and end": (
        lambda x: (x[None, :, None].exp() - x.max()).sum((0, 2)),
        floats(5, 4),
    ),
    # A loop of five iterations, along which only what is made inside is read.
    "repeated": (lambda x: x[None].expand(5, 3, 4).sin().exp().sum(0), floats(3, 4)),
    "label": (
        lambda x: nn.functional.cross_entropy(
            x, torch.tensor([1]), label_smoothing=0.1
        ),
        floats(1, 4),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_is_compiled_and_eager(
    name: str, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled in the first call, and without a warning that it could not be."""
    monkeypatch.setenv("MAGWELD_RACE", "0")
    function, x = CASES[name]
    with torch.no_grad():
        traced = frontend.trace(function, compile="now")
        traced(x)
        torch.testing.assert_close(traced(x), function(x), rtol=1e-4, atol=1e-5)
        assert traced.stats()["hits"] == 1
        assert "linalg" in traced.records[0].mlir("planned")
    assert not [str(item.message) for item in recwarn if "failed" in str(item.message)]
