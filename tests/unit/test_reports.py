"""Reports of benchmarks: what became slower is named, and tables show each figure."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def result(case: str, eager: float, ours: float, **more: Any) -> dict[str, Any]:
    """Return one row as benchmarks write it, times in milliseconds."""
    times = {"eager": eager, "torch.compile": 0.8 * eager, "magweld": ours}
    return {"case": case, **more, "times": {p: {"min_ms": t} for p, t in times.items()}}


def write(path: Path, *results: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    facts = {"machine": "some-cpu", "threads": 1, "cores": 2, "date": "2026-01-01"}
    path.write_text(json.dumps(facts | {"results": results}))


@dataclass(frozen=True)
class Done:
    """What a script has printed and how it ended."""

    returncode: object
    stdout: str
    stderr: str


def run(script: str, *arguments: str | Path) -> Done:
    """Run a script in this process: another one would take longer than the script."""
    path, out, err = BENCHMARKS / script, io.StringIO(), io.StringIO()
    code: object = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        patch.syspath_prepend(str(BENCHMARKS))
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as stop:
            code = stop.code or 0
    return Done(code, out.getvalue(), err.getvalue())


def test_runs_that_differ_by_noise_have_no_regression(tmp_path: Path) -> None:
    write(tmp_path / "a" / "r.json", result("x", 10, 5), result("y", 8, 4))
    # The second run was on a machine that is twice as slow.
    write(tmp_path / "b" / "r.json", result("x", 20, 10.2), result("y", 16, 7.9))
    done = run("compare.py", tmp_path / "a", tmp_path / "b")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no case is worse by more than 5%" in done.stdout


def test_what_became_slower_or_is_gone_is_named(tmp_path: Path) -> None:
    before = [result("x", 10, 5, batch=n) for n in (1, 8)] + [result("gone", 1, 1)]
    write(tmp_path / "a.json", *before)
    after = [result("x", 10, 5, batch=1), result("x", 10, 6, batch=8)]
    write(tmp_path / "b.json", *after)
    done = run("compare.py", tmp_path / "a.json", tmp_path / "b.json")
    assert done.returncode == 1
    slower = [line for line in done.stdout.splitlines() if "x 8" in line]
    assert len(slower) == 1
    assert "0.83" in slower[0]
    assert "x 1" not in done.stdout
    assert "missing" in done.stdout
    wide = run(
        "compare.py", "--tolerance", "0.3", tmp_path / "a.json", tmp_path / "a.json"
    )
    assert wide.returncode == 0


def test_what_is_counted_or_planned_is_compared_as_well(tmp_path: Path) -> None:
    def planned(**cells: Any) -> dict[str, Any]:
        return {"case": "m v100", "cells": cells}

    before = planned(kernels=10, gain=2.0, broken=0, extents="8x8", noise=1.0)
    write(tmp_path / "a" / "r.json", before)
    for worse, named in (
        ({"kernels": 11}, ["kernels"]),
        ({"gain": 1.8}, ["gain"]),
        ({"broken": 1}, ["broken"]),
        ({"kernels": 9, "gain": 2.2}, []),
        ({"kernels": None}, ["kernels"]),
        ({"noise": 9.0, "extents": "4x4"}, []),
    ):
        write(tmp_path / "b" / "r.json", planned(**{**before["cells"], **worse}))
        done = run("compare.py", tmp_path / "a", tmp_path / "b")
        assert done.returncode == bool(named), done.stdout + done.stderr
        for column in before["cells"]:
            assert (f"m v100: {column}" in done.stdout) == (column in named)


def test_memory_and_hits_are_compared_beside_eager(tmp_path: Path) -> None:
    def measured(ours: float, eager: float) -> dict[str, Any]:
        return {"case": "m", "cells": {"magweld MiB": ours, "eager MiB": eager}}

    write(tmp_path / "a" / "r.json", measured(100.0, 200.0))
    for ours, eager, code in ((150.0, 300.0, 0), (110.0, 200.0, 1)):
        write(tmp_path / "b" / "r.json", measured(ours, eager))
        done = run("compare.py", tmp_path / "a", tmp_path / "b")
        assert done.returncode == code, done.stdout
        assert ("m: magweld MiB" in done.stdout) == bool(code)


def test_a_report_that_is_gone_is_named_once(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder / "kept.json", result("x", 10, 5))
    rows = [{"case": name, "cells": {"noise": 1.0}} for name in ("one", "two")]
    write(tmp_path / "a" / "gone.json", *rows)
    done = run("compare.py", tmp_path / "a", tmp_path / "b")
    assert done.returncode == 1
    (said,) = (line for line in done.stdout.splitlines() if "all cases" in line)
    assert "gone" in said
    assert "missing" in said


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": [1]}'])
def test_a_file_that_is_no_report_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    for script, files in (
        ("compare.py", (tmp_path / "a.json", tmp_path / "a.json")),
        ("render_results.py", (tmp_path,)),
    ):
        done = run(script, *files)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr


def test_what_a_paper_states_stands_beside_what_was_found(tmp_path: Path) -> None:
    none, registers, every = (
        {"case": f"m {fusion}", "cells": {"kernels": n, "moved MiB": 1.0 * n}}
        for fusion, n in (("none", 40), ("registers", 20), ("all", 5))
    )
    for row, time in zip((none, registers, every), (10.0, 5.0, 4.0), strict=True):
        row["cells"]["predicted ms"] = time
    write(tmp_path / "ablation.json", none, registers, every)
    write(tmp_path / "whole_models-t2-b1.json", result("m", 9, 3))
    done = run("render_results.py", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "README.md").read_text()
    assert "| time less by registers | 52% | 50.0% |" in page
    assert "| time less again by all | 29% | 20.0% |" in page
    assert "| kernels less again by all | not stated | 75.0% |" in page
    assert "| m all | 5 | 5 | 4 |" in page
    assert "| over PyTorch | 4.29 x | 3.00 x |" in page
    assert "| over ONNX Runtime | 2.07 x | - |" in page
    assert ">kernels</text>" in (tmp_path / "ablation.svg").read_text()
    assert "`benchmarks/paper_figures/ablation.py --cases nerf" in page
    (missing,) = re.findall(r"^Not measured here: (.*)\.$", page, re.MULTILINE)
    assert "`traffic`" in missing
    assert "`ablation`" not in missing


def test_tables_and_plots_have_each_case(tmp_path: Path) -> None:
    write(tmp_path / "subgraphs-t1.json", result("x", 10, 5), result("y", 8, 2))
    failed = {"case": "broken", "absent": {"magweld": "reason"}}
    write(tmp_path / "models.json", result("m", 100, 200), failed)
    done = run("render_results.py", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "README.md").read_text()
    assert "| x | 10 (2.00) | 8 (1.60) | 5 |" in page
    assert "**2.83** | **2.26**" in page
    assert "| broken | - | - | - |" in page
    assert "some-cpu" in page
    svg = (tmp_path / "subgraphs-t1.svg").read_text()
    assert ">x</text>" in svg
    assert ">y</text>" in svg
    again = run("render_results.py", tmp_path)
    assert again.returncode == 0
    assert (tmp_path / "subgraphs-t1.svg").read_text() == svg


def test_the_page_of_the_stored_results_is_made_of_the_stored_reports(
    tmp_path: Path,
) -> None:
    stored = BENCHMARKS / "results"
    for file in stored.glob("*.json"):
        shutil.copy(file, tmp_path)
    done = run("render_results.py", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "README.md").read_text()
    assert page == (stored / "README.md").read_text()
