"""Branches and loops on tensor values in portable artifacts, in C and in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import c_runtime
import numpy as np
import pytest
import torch
from torch import Tensor

import magweld


def _far(x: Tensor) -> Tensor:
    """Return what is too far from the inputs for a guard."""
    for _ in range(60):
        x = x * 1.01
    return x


def loop_in_branch(x: Tensor) -> Any:
    h = _far(x)
    if h.mean() > 1:
        while h.norm() > 4:
            h = h * 0.5 - h.mean() * 0.001
    else:
        h = (h @ h.T).softmax(-1) @ h
    return h * 2


def carried_in_turn(x: Tensor) -> Any:
    h = _far(x)
    old = h * 0
    while (h - old).abs().max() > 0.01:
        old, h = h, h * 0.5 + 0.1
    return h, old


def branch_in_loop(x: Tensor) -> Any:
    """A result may be what was there before the loop."""
    h = _far(x)
    k = h
    while h.abs().max() > 2:
        if h.mean() > 0:
            h = (h * 0.5 - 0.01).tanh() * 1.5
        else:
            h = h * 0.7 + k * 0.001
    return h, k


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", [loop_in_branch, carried_in_turn, branch_in_loop])
def test_control_flow(
    function: Callable[[Tensor], Any], library: ctypes.CDLL, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    start = torch.rand(6, 6)
    # A run that goes through the loops shows what they do.
    example = (7 * start,)
    artifact = magweld.compile_portable(function, example, levels=("x86-64-v3",))
    artifact.save(tmp_path / "control.mwp")
    model = c_runtime.Model(library, tmp_path / "control.mwp")
    for scale in (0.0, 0.01, 1.0, 7.0, 100.0):
        x = start * scale
        expected, found = function(x), artifact.run([x.numpy()])
        expected = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-6)
        for one, other in zip(model.run([x.numpy()]), found, strict=True):
            np.testing.assert_array_equal(one, other)
    model.close()
