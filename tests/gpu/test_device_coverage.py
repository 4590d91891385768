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


def test_kernels_and_what_torch_runs_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "device_coverage.json"
    run = coverage.Run(path, 600.0)
    plans = coverage.planned_together(["rocdl:gfx90a", "rocdl:gfx942"], own=False)
    (first, second) = run.count("embedding-norm", "f16", plans)
    for found in (first, second):
        assert found.kernels == found.compiled == 1
        assert not found.refused
        assert set(found.externals) == {"magweld.checked_index.default"}
        assert coverage.row(found).endswith("| whole")
    assert first.device == second.device
    again = coverage.Run(path, 600.0)
    again.resume()
    assert again.found == [first, second]
    assert list(again.count("embedding-norm", "f16", plans)) == []


def test_each_target_has_a_plan_of_its_own_on_demand() -> None:
    names = ["nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx942"]
    together = coverage.planned_together(names, own=False)
    assert [[str(x) for x in one] for one in together] == [names[:2], names[2:]]
    assert len({x.reference for x in together[0]}) == 1
    apart = coverage.planned_together(names, own=True)
    assert len({one.reference for (one,) in apart}) == 3


def test_a_report_names_what_has_no_code(tmp_path: Path) -> None:
    whole = coverage.Coverage("mlp", "nvvm:sm_80", "f32", 2, 2, ["aten.gather"])
    part = coverage.Coverage("mlp", "nvvm:sm_80", "bf16", 2, 1)
    part.refused["gpu-math-function"] = ["exp"]
    lost = coverage.Coverage("scores", "nvvm:sm_80", problem="not done in 1 s")
    path = tmp_path / "device_coverage.json"
    reporting.write_report(path, 1, coverage.reported([whole, lost, part]))
    rows = {row.name: row.cells for row in reports.read_report(path).rows}
    assert rows["mlp"]["through torch"] == "aten.gather"
    assert rows["mlp"]["sm_80 f32"] == "2 of 2"
    assert rows["mlp"]["sm_80 bf16"] == "1 of 2"
    assert rows["mlp"]["gfx942 bf16"] == "-"
    assert rows["mlp"]["without code"] == "gpu-math-function: exp (sm_80 bf16)"
    assert rows["scores"]["sm_80 f32"] == "no plan"
    assert rows["scores"]["without code"] == "not done in 1 s (sm_80 f32)"
    counted = coverage.totals([whole, lost, part])
    assert counted["sm_80 f32"].startswith("1 of 2 cases whole, 2 of 2 kernels")


def test_types_take_turns() -> None:
    """A run that is ended early has seen every case in some type."""
    cases = importlib.import_module("device_cases")
    found = list(cases.in_turns(["a", "b", "c", "d"], ["f32", "bf16"]))
    assert found[:4] == [("a", "f32"), ("b", "bf16"), ("c", "f32"), ("d", "bf16")]
    assert len(set(found)) == len(found) == 8


def test_kernels_for_nvidia_are_compared_in_the_interpreter(tmp_path: Path) -> None:
    emulation = importlib.import_module("device_emulation")
    found = emulation.emulate("pooled-scale", "nvvm:sm_80", "bf16")
    assert found.kernels
    assert found.is_right, emulation.row(found)
    path = tmp_path / "device_emulation.json"
    reporting.write_report(path, 1, emulation.reported([found]))
    assert emulation.known(path) == [found]
    lost = emulation.Emulation("pooled-scale", "nvvm:sm_80", "f32", problem="a race")
    assert not lost.is_right
    assert emulation.totals([found, lost])["nvvm:sm_80 bf16"] == "1 of 1 right"


def test_emulations_are_reported_by_case() -> None:
    emulation = importlib.import_module("device_emulation")
    one = emulation.Emulation
    found = [
        one("scores", "rocdl:gfx942", "f32", 1, error=1e-7),
        one("scores", "nvvm:sm_80", "f16", 1, error=0.5),
        one("mlp", "rocdl:gfx942", "f32", problem="not done in 300 s"),
    ]
    first, second = emulation.reported(reversed(found))
    assert first["cells"] == {"gfx942 f32": "1.0e-07", "sm_80 f16": "WRONG: 5.0e-01"}
    assert second["cells"] == {"gfx942 f32": "not done in 300 s", "sm_80 f16": "-"}
    assert {len(row["found"]) for row in (first, second)} == {2, 1}
