"""The object file of `magweld-opt --compile-to=object`: its kernel computes."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

from magweld.codegen.loader import LoadedObjects

INPUTS = Path(__file__).parents[2] / "lit_tests" / "pipelines" / "Inputs"


def test_the_kernel_of_an_object_gives_what_eager_gives(tmp_path: Path) -> None:
    made = tmp_path / "kernels.o"
    command = [
        *(sys.executable, "-m", "magweld.tools.magweld_opt"),
        str(INPUTS / "linear-norm.mlir"),
        f"--device={INPUTS / 'small-cpu.toml'}#small-cpu",
        "--library=never",
        "--compile-to=object",
        *("-o", str(made)),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    loaded = LoadedObjects([made.read_bytes()], ["kernel_0"])
    x, w = torch.randn(16, 32), torch.randn(32, 64)
    b, scale, shift = torch.randn(64), torch.randn(64), torch.randn(64)
    out = torch.full((16, 64), float("nan"))
    tensors = (x, w, b, scale, shift, out)
    kinds = [ctypes.c_void_p] * len(tensors) + [ctypes.c_int64] * 2
    kernel = ctypes.CFUNCTYPE(None, *kinds)(loaded.address("kernel_0"))
    pointers = [tensor.data_ptr() for tensor in tensors]
    wanted = F.layer_norm(torch.relu(x @ w + b), (64,), scale, shift)

    kernel(*pointers, 0, 1)
    torch.testing.assert_close(out[:8], wanted[:8])
    assert out[8:].isnan().all(), "the second tile is not computed yet"
    kernel(*pointers, 1, 2)
    torch.testing.assert_close(out, wanted)
