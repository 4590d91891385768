"""Activations behind norms of groups of channels, and what else reads these norms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magweld import frontend

NORM = nn.GroupNorm(4, 24)
CONVOLUTION = nn.Conv2d(24, 24, 3, padding=1)


def floats(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def gated(x: Tensor) -> Tensor:
    """An activation whose result is scaled for each channel, and an argument."""
    scale = x.mean((2, 3), keepdim=True)
    return F.silu(NORM(x)) * scale + x


def both(x: Tensor) -> tuple[Tensor, Tensor]:
    """The norm is a result as well."""
    y = NORM(x)
    return y, F.gelu(y)


def residual(x: Tensor) -> Tensor:
    """What follows reads a convolution, which stays as it is."""
    return F.relu(NORM(x)) + CONVOLUTION(x)


CASES: dict[str, Callable[[Tensor], Tensor | tuple[Tensor, Tensor]]] = {
    "silu": lambda x: F.silu(NORM(x)),
    "gelu": lambda x: F.gelu(NORM(x), approximate="tanh"),
    "gated": gated,
    "both": both,
    "residual": residual,
    "convolution": lambda x: CONVOLUTION(F.silu(NORM(x))),
    "two activations": lambda x: NORM(x).sigmoid() * NORM(x).tanh(),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("shape", [(2, 24, 6, 10), (1, 24, 16, 16), (3, 24, 1, 5)])
@pytest.mark.parametrize("name", CASES)
def test_equals_eager(
    name: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled in the first call, and the same numbers but for rounding."""
    monkeypatch.setenv("MAGWELD_RACE", "0")
    function, x = CASES[name], floats(*shape)
    with torch.no_grad():
        traced = frontend.trace(function, compile="now")
        traced(x)
        torch.testing.assert_close(traced(x), function(x), rtol=1e-4, atol=1e-4)
    assert traced.stats()["hits"] == 1
    assert "linalg" in traced.records[0].mlir("planned")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_activation_is_part_of_the_kernel(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A norm and its activation are one kernel, with the rounding between them."""
    monkeypatch.setenv("MAGWELD_RACE", "0")
    module = nn.Sequential(nn.GroupNorm(4, 24), nn.SiLU()).to(dtype)
    x = floats(2, 24, 8, 8).to(dtype)
    with torch.no_grad():
        traced = frontend.trace(module, compile="now")
        traced(x)
        tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
        torch.testing.assert_close(traced(x), module(x), **tolerance)
    tiled = traced.records[0].mlir("tiled")
    assert tiled.count("tile_graph.kernel,") == 1
