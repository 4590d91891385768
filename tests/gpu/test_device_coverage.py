"""Which kernels have code for a GPU: what is counted, and how its report shows it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "examples")]

coverage = importlib.import_module("device_coverage")
reporting = importlib.import_module("reporting")
reports = importlib.import_module("reports")


def test_kernels_and_what_torch_runs_are_counted() -> None:
    found = coverage.measure("embedding-norm", "rocdl:gfx90a", "f16")
    assert found.kernels == found.compiled == 1
    assert not found.refused
    assert set(found.externals) == {"magweld.checked_index.default"}
    assert coverage.row(found).endswith("| whole")


def test_a_report_names_what_has_no_code(tmp_path: Path) -> None:
    whole = coverage.Coverage("x", "nvvm:sm_80", "f32", 2, 2, ["aten.gather"] * 2)
    part = coverage.Coverage("y", "nvvm:sm_80", "bf16", 2, 1)
    part.refused["gpu-math-function"] = ["exp"]
    lost = coverage.Coverage("z", "nvvm:sm_80", problem="not done in 1 s")
    path = tmp_path / "device_coverage.json"
    reporting.write_report(path, 1, list(map(coverage.reported, (whole, part, lost))))
    rows = {row.name: row.cells for row in reports.read_report(path).rows}
    assert rows["x nvvm:sm_80 f32"]["through torch"] == "aten.gather"
    assert rows["x nvvm:sm_80 f32"]["without code"] == "nothing"
    assert rows["y nvvm:sm_80 bf16"]["without code"] == "gpu-math-function: exp"
    assert rows["z nvvm:sm_80 f32"]["without code"] == "not done in 1 s"
