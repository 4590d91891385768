"""Rules of other packages that keep calls apart, by their entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = """
class KeepApart:
    name = "keep-apart"

    def refuses(self, call):
        return "apart" in call.operators and call.moved_bytes == 32 and call.level == 1

class Renamed(KeepApart):
    name = "renamed"

class NoRule:
    name = "keep-apart"
"""
MODULE = """
func.func private @kernel_0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32>
    attributes {tile_graph.kernel} {
  return %o : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = call @kernel_0(%a, %0) {tile_graph.operators = ["apart"]}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tensor.empty() : tensor<4xf32>
  %3 = call @kernel_0(%a, %2) {tile_graph.operators = ["apart"]}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}
"""


def run(
    tmp_path: Path, rules: str, value: str = "other_rules:KeepApart"
) -> subprocess.CompletedProcess[str]:
    """Run batch-kernels beside a package with an entry point."""
    (tmp_path / "other_rules.py").write_text(SOURCE)
    info = tmp_path / "other_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-rules\nVersion: 1.0\n"
    )
    entry = f"[magweld.batch_rules]\nkeep-apart = {value}\n"
    (info / "entry_points.txt").write_text(entry)
    command = [sys.executable, "-m", "magweld.tools.magweld_opt"]
    return subprocess.run(
        [*command, f"--batch-kernels={rules}", "-"],
        input=MODULE,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )


def test_a_rule_that_is_named_keeps_calls_apart(tmp_path: Path) -> None:
    done = run(tmp_path, "rules=keep-apart")
    assert done.returncode == 0, done.stderr
    assert "2 calls of @kernel_0 (apart, apart) are apart: keep-apart" in done.stdout
    assert "@batch_0" not in done.stdout


def test_an_installed_rule_that_is_not_named_does_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "minimum=2")
    assert done.returncode == 0, done.stderr
    assert "@batch_0" in done.stdout


def test_an_unknown_rule_is_an_error_that_names_the_known_ones(tmp_path: Path) -> None:
    done = run(tmp_path, "rules=keep-appart")
    assert done.returncode == 1
    assert "no batch rule 'keep-appart' is installed" in done.stderr
    assert "keep-apart" in done.stderr.replace("keep-appart", "")


def test_what_is_no_rule_is_a_clean_error(tmp_path: Path) -> None:
    done = run(tmp_path, "rules=keep-apart", "other_rules:NoRule")
    assert done.returncode == 1
    assert "batch rule 'keep-apart' has no method 'refuses'" in done.stderr


def test_a_rule_of_another_name_is_a_clean_error(tmp_path: Path) -> None:
    done = run(tmp_path, "rules=keep-apart", "other_rules:Renamed")
    assert done.returncode == 1
    assert "batch rule 'keep-apart' is called 'renamed'" in done.stderr


def test_what_cannot_be_imported_is_a_clean_error(tmp_path: Path) -> None:
    done = run(tmp_path, "rules=keep-apart", "other_rules:Missing")
    assert done.returncode == 1
    assert "the entry point 'keep-apart = other_rules:Missing'" in done.stderr
