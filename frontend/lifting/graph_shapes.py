"""Owns the shapes of all that a graph makes, for some inputs, found without data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from magweld.logs import expected_errors

Shape = tuple[int, ...]


def shapes_in(module: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> list[Shape]:
    """Return the shapes of all tensors that a graph makes, in order.

    Args:
        module: The graph.
        inputs: Tensors of it; they are neither read nor written.

    Raises:
        Exception: What torch raises for an operator that has no shape without data.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(tensor) for tensor in inputs]
    run = _ShapeRun(module)
    with mode, torch.no_grad(), expected_errors():
        run.run(*fakes)
    return run.shapes


class _ShapeRun(fx.Interpreter):
    """Keeps the shapes of what nodes make."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.shapes: list[Shape] = []

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.shapes.append(tuple(leaf.shape))
        return result
