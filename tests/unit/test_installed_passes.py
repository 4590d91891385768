"""Passes of other packages, by their entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OPT = [sys.executable, "-m", "magweld.tools.magweld_opt"]
SOURCE = """
from dataclasses import dataclass
from typing import ClassVar
from magweld.bindings import ir
from magweld.passes.infrastructure.base import FunctionPass

@dataclass(frozen=True)
class Mark(FunctionPass):
    \"\"\"Mark functions.\"\"\"

    name: ClassVar[str] = "mark-functions"
    text: str = "seen"

    def run_on_function(self, function):
        function.attributes["mark"] = ir.StringAttr.get(self.text)
"""
MODULE = "func.func @f() {\n  return\n}\n"


def run(
    tmp_path: Path, entry: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run magweld-opt beside a package with an entry point."""
    (tmp_path / "other_passes.py").write_text(SOURCE)
    info = tmp_path / "other_passes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-passes\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(f"[magweld.passes]\n{entry}\n")
    return subprocess.run(
        [*OPT, *arguments],
        input=MODULE,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )


def test_a_pass_of_another_package_runs_with_options(tmp_path: Path) -> None:
    entry = "mark-functions = other_passes:Mark"
    done = run(tmp_path, entry, "--mark-functions=text=found", "-")
    assert done.returncode == 0, done.stderr
    assert 'mark = "found"' in done.stdout


def test_it_is_listed(tmp_path: Path) -> None:
    done = run(tmp_path, "mark-functions = other_passes:Mark", "--list-passes")
    assert "--mark-functions" in done.stdout


def test_what_is_no_pass_is_a_clean_error(tmp_path: Path) -> None:
    done = run(tmp_path, "mark-functions = other_passes:Missing", "-")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "entry point 'mark-functions = other_passes:Missing'" in line


def test_a_name_of_ours_is_taken(tmp_path: Path) -> None:
    done = run(tmp_path, "fold-transpose = other_passes:Mark", "-")
    assert done.returncode == 1
    assert "pass 'fold-transpose' is both" in done.stderr
