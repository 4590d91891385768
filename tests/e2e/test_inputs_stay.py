"""Kernels leave what they read as it is, until all that read it are done."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, fx

from magweld import frontend
from magweld.api import compile_graph


def inserted(x: Tensor, part: Tensor, w: Tensor) -> Tensor:
    return torch.slice_scatter(x, part, 0, 40, 250)


def read_before(x: Tensor, part: Tensor, w: Tensor) -> Tensor:
    """What is overwritten was read before, by a kernel that runs later."""
    doubled = x + x
    x[40:250] = part
    return doubled @ w


@pytest.mark.parametrize("eager", [inserted, read_before])
def test_inputs_are_read_only(eager: Callable[..., Tensor]) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = ((251, 33), (210, 33), (33, 8))
    inputs = [torch.randn(shape, generator=generator) for shape in shapes]
    compiled = frontend.trace(eager)
    compiled(*(value.clone() for value in inputs))
    ours, theirs = ([value.clone() for value in inputs] for _ in range(2))
    torch.testing.assert_close(compiled(*ours), eager(*theirs))
    assert compiled.stats()["hits"] == 1
    for got, expected in zip(ours, theirs, strict=True):
        assert torch.equal(got, expected)


def test_a_copy_of_a_parameter_needs_no_gradient() -> None:
    """The compiled function returns its argument, of which the caller gets a copy."""
    parameter = torch.nn.Parameter(torch.ones(4, 5))
    graph = fx.symbolic_trace(lambda x: [x.detach() * 1])
    compiled = compile_graph(graph, [parameter])
    (made,) = compiled(parameter)
    assert not made.requires_grad
    assert made.data_ptr() != parameter.data_ptr()
