"""The bindings: what the compiler imports of them, and what it imports on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from magweld import bindings


def loaded_after(code: str) -> set[str]:
    """Return the modules that a process has imported after some code."""
    found = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(found.stdout.split())


def test_a_worker_imports_no_classes_of_dialects_for_gpus() -> None:
    loaded = loaded_after("import magweld.compiler")
    assert "torch_mlir.dialects._llvm_ops_gen" in loaded
    for dialect in ("amdgpu", "nvgpu", "nvvm", "omp", "rocdl", "torch"):
        assert f"torch_mlir.dialects._{dialect}_ops_gen" not in loaded


def test_a_process_that_traces_imports_no_compiler() -> None:
    loaded = loaded_after("import magweld.api, magweld.aot.compile")
    compiler = ("magweld.compiler", "magweld.dialects", "magweld.passes.pipelines")
    assert not {*compiler} & loaded
    assert "torch_mlir.dialects.linalg" not in loaded
    # Only training cuts graphs in two; what does it takes a second to import.
    assert "torch._functorch.partitioners" not in loaded


@pytest.mark.parametrize("name", bindings.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(bindings, name) is not None


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'spirv'"):
        bindings.spirv  # noqa: B018
