"""Owns what eager torch promises about a graph: outputs, aliases, written inputs.

The graph is run once on tensors without data. That tells for each output its dtype,
shape and strides, whether it is an input, and which tensors share memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.utils import _pytree as pytree

from magweld.diagnostics import UnsupportedError
from magweld.frontend.importer import refusals


@dataclass(frozen=True)
class TensorFacts:
    """What can be known of a tensor without its data.

    Attributes:
        identity: Equal for two outputs or inputs that are one tensor object.
        storage: Equal for tensors that share memory.
        storage_bytes: Size of that memory.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    identity: int
    storage: int
    storage_bytes: int


@dataclass(frozen=True)
class Observation:
    """One run of a graph without data.

    Attributes:
        inputs: Facts of each input before the run.
        outputs: Leaves of the output in order; what is no tensor stands for itself.
        structure: How the leaves make up the output.
    """

    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts | object, ...]
    structure: Any


class GraphRunner(fx.Interpreter):
    """Runs a graph node by node and names the node that cannot be run."""

    def run_node(self, n: fx.Node) -> Any:
        """Run one node.

        Raises:
            UnsupportedError: The node cannot run on tensors without data.
        """
        try:
            return super().run_node(n)
        except UnsupportedError:
            raise
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            detail = str(error.func)
            raise refusals.DATA_DEPENDENT.at(refusals.describe(n), detail) from error
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            raise refusals.GRAPH_RUN.at(refusals.describe(n), detail) from error


@contextmanager
def undisturbed() -> Iterator[None]:
    """Run graphs without data and leave grad mode and random state as they were."""
    with (
        torch.random.fork_rng(devices=[]),
        torch.inference_mode(False),
        torch.no_grad(),
    ):
        yield


def observe(graph: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Observation:
    """Run a graph once on tensors without data that alias as the inputs do.

    Args:
        graph: A graph at torch level; it may write to its inputs.
        inputs: One real tensor per placeholder; they are not touched.

    Raises:
        UnsupportedError: The graph cannot be run so, or changes more of an input
            than its elements.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(tensor, static_shapes=True) for tensor in inputs]
    before = tuple(_facts(fake) for fake in fakes)
    with undisturbed(), mode:
        output = GraphRunner(graph).run(*fakes)
    if before != tuple(_facts(fake) for fake in fakes):
        raise refusals.INPUT_METADATA.at("the graph's inputs")
    leaves, structure = pytree.tree_flatten(output)
    outputs = tuple(
        _facts(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves
    )
    return Observation(before, outputs, structure)


def _facts(tensor: torch.Tensor) -> TensorFacts:
    storage = tensor.untyped_storage()
    return TensorFacts(
        dtype=tensor.dtype,
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        offset=int(tensor.storage_offset()),
        identity=id(tensor),
        storage=storage._cdata,
        storage_bytes=storage.nbytes(),
    )
