"""Benchmarks are not run by tests; they must still fit what they import."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, sys
sys.path[:0] = [{benchmarks!r}, {examples!r}, {figures!r}]
import torchvision_schemas
kept = torchvision_schemas.declare()
for name in {names!r}:
    importlib.import_module(name)
"""


@pytest.mark.whole
def test_every_benchmark_can_be_imported() -> None:
    figures = ROOT / "benchmarks" / "paper_figures"
    scripts = [*(ROOT / "benchmarks").glob("*.py"), *figures.glob("[a-z]*.py")]
    names = sorted(path.stem for path in scripts)
    assert {"subgraphs", "ablation"} <= set(names)
    folders = {f: str(ROOT / f) for f in ("benchmarks", "examples")}
    code = IMPORT_ALL.format(names=names, figures=str(figures), **folders)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_full_run_names_scripts_and_every_claim_has_a_run() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r});"
        "import full_run; from paper_claims import CLAIMS;"
        "folder = full_run.FOLDER;"
        "assert all((folder / f'{r.script}.py').exists() for r in full_run.RUNS);"
        "print(*CLAIMS, flush=True); sys.argv[1:] = ['--list']; full_run.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    claims, *runs = done.stdout.splitlines()
    assert set(claims.split()) <= {line.split()[0] for line in runs}


def test_an_interrupted_benchmark_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    reporting = importlib.import_module("reporting")
    reports = importlib.import_module("reports")
    shown: list[list[dict[str, Any]]] = []

    def runs() -> Iterator[dict[str, Any]]:
        yield {"case": "first", "times": {}}
        raise KeyboardInterrupt

    options = argparse.Namespace(o=tmp_path / "runs" / "some.json", threads=1)
    with pytest.raises(KeyboardInterrupt):
        reporting.reported(runs(), options, shown.append, dtype="f32")
    kept = reports.read_report(options.o)
    assert [row.name for row in kept.rows] == ["first"]
    assert kept.facts["dtype"] == "f32"
    assert shown == [[{"case": "first", "times": {}}]]
