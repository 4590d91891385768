"""Owns the shapes of what a graph makes for some inputs, found without data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.graphs.size_relation import SizeRelation
from magweld.logs import expected_errors
from magweld.paced import checkpoint

Shape = tuple[int, ...]


def inputs_at(
    tensors: Sequence[torch.Tensor], relation: SizeRelation, sizes: Sequence[int]
) -> list[torch.Tensor]:
    """Return tensors of the shapes for some sizes; those without such are the same."""
    return [
        torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)
        if number in relation.runtime_tensors
        else tensor
        for number, (tensor, shape) in enumerate(
            zip(tensors, relation.shapes_at(sizes), strict=True)
        )
    ]


def shapes_in(
    module: fx.GraphModule, inputs: Sequence[torch.Tensor]
) -> list[tuple[fx.Node, Shape]]:
    """Return the nodes of a graph and the shapes of the tensors they make, in order.

    Paced work may pause at each operator.

    Args:
        module: The graph.
        inputs: Tensors of it; they are neither read nor written.

    Raises:
        Exception: What torch raises for an operator that has no shape without data.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(tensor) for tensor in inputs]
    run = _ShapeRun(module)
    pauses = _Pauses()  # type: ignore[no-untyped-call]
    with mode, pauses, torch.no_grad(), expected_errors():
        run.run(*fakes)
    return run.shapes


class _Pauses(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Pauses at each operator: a recurrent layer is one node of very many."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        checkpoint()
        return func(*args, **(kwargs or {}))


class _ShapeRun(fx.Interpreter):
    """Keeps the shapes of what nodes make."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.shapes: list[tuple[fx.Node, Shape]] = []

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.shapes.append((n, tuple(leaf.shape)))
        return result
