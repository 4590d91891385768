"""AMD machine code of some subgraphs, run instruction by instruction, against torch.

All of them: `python benchmarks/device_emulation.py`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

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
