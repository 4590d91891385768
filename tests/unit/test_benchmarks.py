"""Benchmarks are not run by tests; they must still fit what they import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, sys
sys.path[:0] = [{benchmarks!r}, {examples!r}]
import torchvision_schemas
kept = torchvision_schemas.declare()
for name in {names!r}:
    importlib.import_module(name)
"""


def test_every_benchmark_can_be_imported() -> None:
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
    assert "subgraphs" in names
    folders = {f: str(ROOT / f) for f in ("benchmarks", "examples")}
    code = IMPORT_ALL.format(names=names, **folders)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
