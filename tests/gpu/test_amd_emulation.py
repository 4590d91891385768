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
    ("attention", "f32"),
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
    assert sorted(launch.members for launch in program.launches) == [2, 2]
    found = gpu.emulated(graph, program, gpu.EmulatedGpu())(*inputs)
    for mine, theirs in zip(found, branches(*inputs), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
