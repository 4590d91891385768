"""The script for a first run on a GPU, as far as it goes without one."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import magweld

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

gpu = importlib.import_module("gpu")

# Loading goes without whatever only the compiler needs.
LOAD = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
import magweld
artifact = magweld.load({file!r})
assert artifact.program.launches, artifact
assert artifact.signature
"""
PACKAGES = {"torch_mlir", "llvmlite", "platformdirs", "jinja2", "rich", "packaging"}


def options(folder: Path, **others: Any) -> argparse.Namespace:
    chosen = {
        "folder": folder,
        "cases": ["add-norm", "double-conv"],
        "dtypes": ["f32"],
        "targets": ["nvvm:sm_80"],
        "output": folder,
        "seconds": 60.0,
        "check_only": False,
    }
    return argparse.Namespace(**{**chosen, **others})


def test_a_pack_is_compiled_and_read_again(tmp_path: Path) -> None:
    gpu.pack(options(tmp_path))
    _, packed = gpu.read_pack(tmp_path)
    assert [one.case for one in packed] == ["add-norm", "double-conv"]
    assert all(one.kernels and not one.problem for one in packed)
    assert not packed[1].externals
    for one in packed:
        assert magweld.load(tmp_path / one.file).target == one.target
    file = str(tmp_path / packed[0].file)
    script = LOAD.format(packages=PACKAGES, file=file)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpu.run(options(tmp_path)) == 2
    assert "torch sees no GPU" in capsys.readouterr().err


def outcome_of(function: Callable[..., Any], name: str = "add-norm") -> Any:
    case = gpu.ALL[name]
    outcome = gpu.Outcome(gpu.Packed(name, "f32", "nvvm:sm_80", "a.mw", 1))
    gpu.check(outcome, function, case, gpu.arguments_of(case, "f32", "cpu"))
    return outcome


def test_results_are_compared_with_double_precision() -> None:
    function = gpu.ALL["add-norm"].function
    right = outcome_of(function)
    assert right.error == right.torch_error < 1e-5
    assert not right.problems

    def wrong(*arguments: torch.Tensor) -> Any:
        result = function(*arguments)
        first = gpu.tensors_of(result)[0]
        first.view(-1)[7] = float("nan")
        return result

    assert outcome_of(wrong).problems == ["error inf"]
    assert "types" in outcome_of(lambda *a: tuple(
        t.double() for t in gpu.tensors_of(function(*a))
    )).problems[0]  # fmt: skip


def test_what_fails_is_a_row(tmp_path: Path) -> None:
    outcome = outcome_of(gpu.ALL["add-norm"].function)

    def failing() -> None:
        raise RuntimeError("CUDA error: an illegal memory access")

    assert gpu.attempt(outcome, "graph", failing) is None
    outcome.times.update({"magweld": 20.0, "graph": 10.0, "eager": 30.0})
    assert "graph: RuntimeError: CUDA error" in gpu.row(outcome)
    assert gpu.ratios([outcome]) == {"eager": pytest.approx(3.0)}
    gpu.write(options(tmp_path), {"device": "none"}, [outcome])
    written = json.loads((tmp_path / "gpu.json").read_text())
    assert written["results"][0]["problems"] == outcome.problems
    assert written["results"][0]["case"] == "add-norm"
