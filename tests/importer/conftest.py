"""Owns the comparison of an imported graph with eager torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from magweld.importer.importer import import_graph

# Test modules of a folder cannot import each other otherwise under importlib mode.
sys.path.insert(0, str(Path(__file__).parent))

import recording
from linalg_reference import Reference


def same_metadata(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Tell whether dtype, shape and strides are equal."""
    return (left.dtype, left.shape, left.stride()) == (
        right.dtype,
        right.shape,
        right.stride(),
    )


@pytest.fixture(name="record")
def record_fixture() -> Callable[..., torch.fx.GraphModule]:
    """Return the function that records another's calls of torch as a graph."""
    return recording.record


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run a function on its inputs through its import."""

    def call(
        function: Callable[..., Any],
        *inputs: torch.Tensor,
        example: Sequence[torch.Tensor] | None = None,
    ) -> Any:
        example = inputs if example is None else example
        graph = recording.record(
            function, *[tensor.detach().clone() for tensor in example]
        )
        imported = import_graph(graph, example)
        arguments = imported.prepare(inputs)
        return imported.finish(inputs, Reference(imported)(arguments))

    return call


@pytest.fixture
def check() -> Callable[..., Reference]:
    """Compare a function with its import on the same inputs; returns the reference.

    Results, written inputs and the state of the random generator must be equal.
    """

    def compare_once(
        function: Callable[..., Any],
        *inputs: torch.Tensor,
        atol: float = 1e-6,
        **options: bool,
    ) -> Reference:
        graph = recording.record(function, *[tensor.clone() for tensor in inputs])
        mine = [tensor.clone() for tensor in inputs]
        theirs = [tensor.clone() for tensor in inputs]
        reference = Reference(import_graph(graph, mine, **options))
        with torch.no_grad():
            torch.manual_seed(0)
            expected = function(*theirs)
            state = torch.get_rng_state()
            torch.manual_seed(0)
            imported = reference.imported
            actual = imported.finish(mine, reference(imported.prepare(mine)))
            assert torch.equal(torch.get_rng_state(), state)
        compare(actual, expected, atol)
        for left, right in zip(mine, theirs, strict=True):
            compare(left, right, atol)
        return reference

    return compare_once


def compare(actual: Any, expected: Any, atol: float) -> None:
    """Assert that values, dtypes, shapes and strides are equal, leaf by leaf."""
    left = torch.utils._pytree.tree_leaves(actual)
    right = torch.utils._pytree.tree_leaves(expected)
    for mine, theirs in zip(left, right, strict=True):
        if not isinstance(theirs, torch.Tensor):
            assert mine == theirs
            continue
        assert same_metadata(mine, theirs)
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=atol, equal_nan=True)
