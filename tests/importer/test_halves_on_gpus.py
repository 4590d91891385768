"""Graphs of halves for a GPU round where torch's kernels for GPUs do.

No GPU is there: the graph that is imported for one runs on the CPU, whose operators on
f32 round alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from magweld.importer.importer import ImportedGraph, import_graph

GPU = torch.device("meta")
DTYPES = (torch.float16, torch.bfloat16)
of_both = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def imported(
    function: Callable[..., Any], device: torch.device, *inputs: Tensor
) -> ImportedGraph:
    graph = fx.Graph()
    places = tuple(graph.placeholder(f"x{number}") for number in range(len(inputs)))
    graph.output(graph.call_function(function, places))
    return import_graph(fx.GraphModule(nn.Module(), graph), inputs, device=device)


def run(graph: ImportedGraph, *inputs: Tensor) -> Tensor:
    for node in graph.aten.graph.nodes:
        if "device" in node.kwargs:
            node.update_kwarg("device", torch.device("cpu"))
    graph.aten.recompile()
    (result,) = graph.aten(*inputs)
    assert isinstance(result, Tensor)
    return result


def numbers(dtype: torch.dtype, count: int = 4096) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(count, generator=generator) * 4).to(dtype)


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype).float()


NUMBERS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "sum": (lambda x: x + 0.3, lambda x: (x.float() + 0.3).to(x.dtype)),
    "difference": (lambda x: x - 0.3, lambda x: (x.float() - 0.3).to(x.dtype)),
    "from": (lambda x: 0.3 - x, lambda x: (0.3 - x.float()).to(x.dtype)),
    "product": (lambda x: x * 0.3, lambda x: (x.float() * 0.3).to(x.dtype)),
    "cube": (lambda x: x**3, lambda x: x * x * x),
    "inverse-square": (lambda x: x**-2, lambda x: torch.reciprocal(x * x)),
    "shrunk": (
        lambda x: functional.softshrink(x, 0.3),
        lambda x: functional.softshrink(x.float(), float(x.new_tensor(0.3))).to(
            x.dtype
        ),
    ),
}


@of_both
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_rounded_as_on_gpus(name: str, dtype: torch.dtype) -> None:
    function, expected = NUMBERS[name]
    x = numbers(dtype)
    graph = imported(function, GPU, x)
    assert not graph.externals
    assert torch.equal(run(graph, x), expected(x))


@of_both
def test_sums_with_numbers_differ_from_those_of_the_cpu(dtype: torch.dtype) -> None:
    x = numbers(dtype)
    on_gpu, on_cpu = (
        run(imported(lambda x: x + 0.3, device, x), x)
        for device in (GPU, torch.device("cpu"))
    )
    assert torch.equal(on_cpu, x + 0.3)
    assert not torch.equal(on_gpu, on_cpu)


@of_both
@pytest.mark.parametrize("other", [torch.float32, torch.int64])
def test_tensors_without_dimensions_are_rounded(
    dtype: torch.dtype, other: torch.dtype
) -> None:
    x = numbers(dtype)
    single = torch.tensor(2049.3).to(other)
    found = run(imported(lambda x, y: x * y, GPU, x, single), x, single)
    assert torch.equal(found, (x.float() * rounded(single, dtype)).to(dtype))


def transposed(image: Tensor, kernel: Tensor) -> Tensor:
    return functional.conv_transpose2d(image, kernel, stride=2)


@of_both
def test_products_and_convolutions_are_generated(dtype: torch.dtype) -> None:
    x, w = numbers(dtype, 64).view(8, 8), numbers(dtype, 128).view(16, 8)
    bias = numbers(dtype, 16)
    assert not imported(functional.linear, GPU, x, w, bias).externals
    image, kernel = x.view(1, 1, 8, 8), w[:2].reshape(1, 1, 4, 4)
    assert not imported(functional.conv2d, GPU, image, kernel).externals
    kernel = w[:2].reshape(1, 4, 2, 2)
    assert not imported(transposed, GPU, image, kernel).externals
    q = numbers(dtype, 256).view(1, 2, 16, 8)
    attention = functional.scaled_dot_product_attention
    assert not imported(attention, GPU, q, q, q).externals


@of_both
def test_images_are_enlarged_by_kernels_and_rounded_once(dtype: torch.dtype) -> None:
    def enlarged(x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=2, mode="bilinear")

    x = numbers(dtype, 64).view(1, 2, 8, 4)
    graph = imported(enlarged, GPU, x)
    assert not graph.externals
    found, exact = run(graph, x), enlarged(x.double())
    assert found.dtype is dtype
    bound = 0.51 * torch.finfo(dtype).eps * exact.abs() + 1e-5
    assert ((found.double() - exact).abs() <= bound).all()


@of_both
@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: x == 0.5, 0),
        (lambda x: x == 0.3, 1),
        (lambda x: functional.group_norm(x, 2), 1),
    ],
)
def test_what_is_not_known_runs_through_torch(
    function: Callable[..., Any], left: int, dtype: torch.dtype
) -> None:
    x = numbers(dtype, 64).view(2, 4, 8)
    assert len(imported(function, GPU, x).externals) == left
    assert not imported(function, torch.device("cpu"), x).externals
