"""The bindings: what the compiler imports of them, and what it imports on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from magweld import bindings


def test_a_worker_imports_no_classes_of_dialects_for_gpus() -> None:
    code = "import sys, magweld.compiler; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(found.stdout.split())
    assert "torch_mlir.dialects._llvm_ops_gen" in loaded
    for dialect in ("amdgpu", "nvgpu", "nvvm", "omp", "rocdl", "torch"):
        assert f"torch_mlir.dialects._{dialect}_ops_gen" not in loaded


@pytest.mark.parametrize("name", bindings.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(bindings, name) is not None


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'spirv'"):
        bindings.spirv  # noqa: B018
