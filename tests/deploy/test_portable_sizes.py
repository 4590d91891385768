"""One program for all sizes of a range in a portable artifact, in C and in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import c_runtime
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

import magweld
from magweld.deploy.portable_artifact import PortableArtifact
from magweld.diagnostics import UnsupportedError


class Rows(nn.Module):
    """Look-ups, products, a normalization, two results from one input each."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(11, 32)
        self.wide = nn.Linear(32, 64)
        self.norm = nn.LayerNorm(64)
        self.narrow = nn.Linear(64, 5)

    def forward(self, ids: Tensor, y: Tensor) -> dict[str, Tensor]:
        hidden = self.norm(self.wide(self.table(ids)).relu())
        return {"scores": self.narrow(hidden).softmax(-1), "twice": y * 2 + 1}


def inputs(batch: int, length: int) -> tuple[Tensor, Tensor]:
    return torch.randint(0, 11, (batch, length)), torch.randn(batch, 3)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    return Rows().eval().requires_grad_(False)


@pytest.fixture(scope="module")
def sized(model: nn.Module) -> PortableArtifact:
    batch, length = Dim("batch", min=2, max=5), Dim("length", min=3, max=8)
    shapes = ({0: batch, 1: length}, {0: batch})
    levels = ("x86-64-v3",)
    return magweld.compile_portable(model, inputs(3, 4), dynamic=shapes, levels=levels)


def test_all_sizes_run_the_same_code(
    model: nn.Module, sized: PortableArtifact, library: ctypes.CDLL, tmp_path: Path
) -> None:
    assert len(sized.program.codes) == 1
    assert len(sized.program.forms) == 4 * 6
    sized.save(tmp_path / "sized.mwp")
    loaded = c_runtime.Model(library, tmp_path / "sized.mwp")
    for batch, length in ((2, 3), (5, 8), (3, 7), (4, 4)):
        given = inputs(batch, length)
        flat = [tensor.numpy() for tensor in given]
        found = sized(*flat)
        for name, expected in model(*given).items():
            np.testing.assert_allclose(found[name], expected.numpy(), rtol=1e-4)
        for one, other in zip(loaded.run(flat), found.values(), strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(c_runtime.RuntimeFailure, match="index out of range"):
        loaded.run([flat[0] + 11, flat[1]])
    with pytest.raises(c_runtime.RuntimeFailure) as raised:
        loaded.run([flat[0][:, :2], flat[1]])
    assert "it takes 24 kinds of shapes, within (2..5, 3..8) (2..5, 3)" in str(
        raised.value
    )
    loaded.close()
    with pytest.raises(IndexError, match="index out of range"):
        sized(flat[0] - 12, flat[1])
    with pytest.raises(ValueError, match=r"within \(2\.\.5, 3\.\.8\) \(2\.\.5, 3\)$"):
        sized(flat[0], flat[1][:1])


def test_an_exported_program_has_its_ranges(model: nn.Module) -> None:
    batch = Dim("batch", min=1, max=3)
    program = export(model, inputs(2, 4), dynamic_shapes=({0: batch}, {0: batch}))
    artifact = magweld.compile_portable(program, dynamic=True, levels=("x86-64-v3",))
    # A batch of 1 is a program of its own.
    assert len(artifact.program.codes) == 2
    for size in (1, 2, 3):
        given = inputs(size, 4)
        found = artifact(*(tensor.numpy() for tensor in given))
        for name, expected in model(*given).items():
            np.testing.assert_allclose(found[name], expected.numpy(), rtol=1e-4)


class Total(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(0) * 2


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(0) * 2


class FirstRows(nn.Module):
    """Reads as many rows of a table as the input has."""

    def __init__(self, sums: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.ones(40, 4), requires_grad=False)
        self.sums = sums

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.table[: x.shape[0]]
        return torch.tanh(x) * 2, rows.sum(0) if self.sums else rows * 2


@pytest.mark.parametrize("sums", [False, True])
def test_programs_that_are_others_for_larger_sizes_are_refused(sums: bool) -> None:
    dynamic = ({0: Dim("rows", min=2, max=40)},)
    with pytest.raises(UnsupportedError) as raised:
        magweld.compile_portable(FirstRows(sums), (torch.randn(3, 4),), dynamic=dynamic)
    message = str(raised.value)
    assert "[portable-sizes]" in message
    assert "makes (40, 4) and not (" in message
    assert f"{Path(__file__).name}:" in message


@pytest.mark.parametrize(
    ("model", "dynamic", "identity"),
    [
        (nn.ReLU(), ({0: Dim("rows")},), "portable-ranges"),
        (nn.ReLU(), ({0: Dim("rows", max=9999)},), "portable-ranges"),
        (nn.ReLU(), True, "portable-export"),
        (torch.relu, ({0: Dim("rows", max=4)},), "portable-export"),
        (Mean(), ({0: Dim("rows", max=4)},), "portable-sizes"),
        (Total(), ({0: Dim("rows", max=4)},), "portable-sizes"),
    ],
)
def test_refusals(model: Callable[..., Any], dynamic: Any, identity: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        magweld.compile_portable(model, (torch.randn(3, 4),), dynamic=dynamic)
    assert f"[{identity}]" in str(raised.value)
