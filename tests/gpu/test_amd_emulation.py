"""AMD machine code of some subgraphs, run instruction by instruction, against torch.

All of them: `python benchmarks/device_emulation.py`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import fx

from magweld.importer.importer import import_graph

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "examples")]

gpu = importlib.import_module("emulated_gpu")
pytestmark = pytest.mark.skipif(bool(gpu.missing()), reason=gpu.missing())

# A convolution with a border, pooling, rows that threads reduce together, products, and
# matrix instructions on staged tiles and on one that the softmax of the block makes.
CASES = (
    # Takes as long as all others.
    pytest.param("attention", "f32", marks=pytest.mark.whole),
    ("conv-relu-pool", "f32"),
    ("pooled-scale", "f32"),
    ("pooled-scale", "bf16"),
    ("mlp", "f16"),
)


@pytest.mark.parametrize(("case", "dtype"), CASES)
def test_machine_code_gives_what_torch_gives(case: str, dtype: str) -> None:
    emulation = importlib.import_module("device_emulation")
    found = emulation.emulate(case, "rocdl:gfx942", dtype)
    assert found.kernels
    assert not found.externals
    assert found.is_right, emulation.row(found)


def test_members_of_a_batch_run_in_one_launch() -> None:
    """Two begin within a tensor, and each finds its own pointers."""

    def branches(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> list[Any]:
        parts = x.split(8, -1)
        return [part.relu() for part in (parts[0], parts[1], y, z)]

    inputs = [torch.randn(3, width) for width in (16, 16, 16)]
    imported = import_graph(
        fx.symbolic_trace(branches), inputs, device=torch.device("cuda", 0)
    )
    graph, program = gpu.compile_in_process(imported, "rocdl:gfx942")
    # Parts of one tensor are another kernel than those of two tensors: both share it.
    (launch,) = program.launches
    (group,) = program.report["groups"]
    assert (launch.kernels, len(group["members"]), len(launch.pointers)) == (2, 4, 8)
    found = gpu.emulated(graph, program, gpu.EmulatedGpu())(*inputs)
    for mine, theirs in zip(found, branches(*inputs), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def test_different_kernels_run_in_one_launch() -> None:
    """Different bodies and extents, a batch among them; a block finds its own."""

    def mixed(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> list[Any]:
        norm = torch.nn.functional.layer_norm(x, [x.shape[-1]])
        return [
            norm,
            y.softmax(-1),
            z.exp(),
            (2 * z).exp(),
            y.narrow(-1, 0, 16).sum(-1),
        ]

    inputs = [torch.randn(shape) for shape in ((5, 48), (3, 64), (7, 32))]
    imported = import_graph(
        fx.symbolic_trace(mixed), inputs, device=torch.device("cuda", 0)
    )
    graph, program = gpu.compile_in_process(imported, "rocdl:gfx942")
    (launch,) = program.launches
    assert launch.kernels > 3
    found = gpu.emulated(graph, program, gpu.EmulatedGpu())(*inputs)
    for mine, theirs in zip(found, mixed(*inputs), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)
