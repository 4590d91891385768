"""Devices of other packages, by their entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OPT = [sys.executable, "-m", "magweld.tools.magweld_opt"]
DEVICE = """
[board]
units = 3
threads = 64
warp = 32
vector_bits = 128
peak_gflops = 100

[[board.levels]]
name = "global"
capacity = 0
bandwidth = 100
transaction = 32
units = 1
kind = "explicit"

[[board.levels]]
name = "register"
capacity = 8192
bandwidth = 1600
transaction = 4
units = 3
kind = "explicit"
"""
MODULE = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>)
      -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
"""


def plan_for(
    tmp_path: Path, device: str, *, value: str = "board_package:DEVICE_FILE"
) -> subprocess.CompletedProcess[str]:
    """Run magweld-opt for a device, beside a package that brings a device file."""
    (tmp_path / "board_package.py").write_text(
        "from pathlib import Path\n"
        "DEVICE_FILE = Path(__file__).with_name('board.toml')\n"
    )
    (tmp_path / "board.toml").write_text(DEVICE)
    info = tmp_path / "board_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: board-package\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(f"[magweld.devices]\nboards = {value}\n")
    return subprocess.run(
        [*OPT, "--compile-to=scheduled", f"--device={device}"],
        input=MODULE,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )


def test_a_graph_is_planned_for_a_device_of_another_package(tmp_path: Path) -> None:
    done = plan_for(tmp_path, "board")
    assert done.returncode == 0, done.stderr
    assert '#tile_graph.device<"board"' in done.stdout


def test_an_unknown_device_is_told_with_those_of_packages(tmp_path: Path) -> None:
    done = plan_for(tmp_path, "bord")
    assert done.returncode == 1
    assert "known devices: cpu, a100, board, h100" in done.stderr


def test_an_entry_point_that_names_no_file_is_a_clean_error(tmp_path: Path) -> None:
    done = plan_for(tmp_path, "board", value="board_package:MISSING")
    assert done.returncode == 1
    assert "the entry point 'boards = board_package:MISSING'" in done.stderr
    assert "[invalid-device-file]" in done.stderr
    assert "Traceback" not in done.stderr
