"""Checks convolutions of many channels that are products of matrices."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from magweld.api import CompiledGraph, compile_graph

# Images, channels, rows and columns of pixels; channels of the result; the window.
SHAPES = [
    ((1, 32, 14, 14), 48, (3, 3), {"stride": 2, "padding": 1}),
    ((2, 40, 9, 23), 33, (3, 5), {"stride": (2, 3), "padding": (0, 2)}),
    ((1, 32, 17, 12), 32, (2, 2), {"stride": (1, 2), "dilation": (3, 1)}),
]


def compiled(x: Tensor, weights: Tensor, options: dict[str, Any]) -> CompiledGraph:
    graph = fx.Graph()
    image, filters = graph.placeholder("x"), graph.placeholder("w")
    made = graph.call_function(F.conv2d, (image, filters), options)
    graph.output((graph.call_function(F.relu, (made,)),))
    return compile_graph(fx.GraphModule(nn.Module(), graph), (x, weights))


@pytest.mark.parametrize(("image", "rows", "window", "options"), SHAPES)
def test_strided_windows_are_products_of_single_points(
    image: tuple[int, ...],
    rows: int,
    window: tuple[int, int],
    options: dict[str, Any],
) -> None:
    torch.manual_seed(0)
    x, weights = torch.randn(image), torch.randn(rows, image[1], *window)
    found = compiled(x, weights, options)
    (graph,) = found.report()["graphs"]
    assert {step["kind"] for step in graph["steps"]} == {"generated"}
    for _ in range(2):  # what was there before is written over
        (result,) = found(x, weights)
        expected = F.relu(F.conv2d(x, weights, **options))
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-3)
        x = x * -2


@pytest.mark.skipif(
    not torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported(),
    reason="the library has the instructions that generated code has not",
)
@pytest.mark.parametrize(
    ("image", "rows", "options"),
    [
        ((1, 32, 14, 14), 48, {"stride": 2, "padding": 1}),
        ((2, 80, 9, 11), 70, {"padding": 1}),
        ((1, 65, 8, 8), 96, {"padding": (0, 2), "dilation": (1, 2)}),
    ],
)
def test_windows_of_bfloat_are_products_of_pairs(
    image: tuple[int, ...],
    rows: int,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MAGWELD_CPU_CAPABILITY", raising=False)
    torch.manual_seed(0)
    x = torch.randn(image).bfloat16()
    weights = torch.randn(rows, image[1], 3, 3).bfloat16()
    found = compiled(x, weights, options)
    (graph,) = found.report()["graphs"]
    assert {step["kind"] for step in graph["steps"]} == {"generated"}
    (result,) = found(x, weights)
    expected = F.relu(F.conv2d(x.double(), weights.double(), **options))
    torch.testing.assert_close(result.double(), expected, rtol=1e-2, atol=1e-2)
