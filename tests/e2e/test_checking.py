"""`MAGWELD_CHECK=1` compares each call with eager; DEBUG and DUMP_DIR show more."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.diagnostics import ResultMismatchError
from magweld.frontend import trace

LOG = """
import torch
from magweld import frontend
fast = frontend.trace(lambda x: x.exp() * 2)
fast(torch.ones(3))
"""


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGWELD_CHECK", "1")


def writing(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    return x + y.t()


def random(x: Tensor) -> Tensor:
    return x * 2 + torch.rand(3, 4)


@pytest.mark.parametrize(("function", "count"), [(writing, 2), (random, 1)])
def test_right_results_pass(function: Any, count: int, compiled: Any) -> None:
    inputs = [torch.randn(3, 4), torch.randn(4, 3)][:count]
    traced = compiled(function, *inputs).traced
    torch.manual_seed(1)
    mine = traced(*[t.clone() for t in inputs])
    drawn = torch.rand(1)
    torch.manual_seed(1)
    torch.testing.assert_close(mine, function(*[t.clone() for t in inputs]))
    torch.testing.assert_close(drawn, torch.rand(1))


def test_a_wrong_result_is_an_error(compiled: Any) -> None:
    (record,) = compiled(lambda x: x * 2, torch.randn(3)).traced.records
    (other,) = compiled(lambda x: x * 3, torch.randn(3)).traced.records
    wrong = dataclasses.replace(record.compiled, reference=other.graph)
    with pytest.raises(ResultMismatchError, match="result-mismatch"):
        wrong(torch.randn(3))


def test_nothing_is_checked_by_default(
    compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAGWELD_CHECK")
    traced = compiled(lambda x: x * 2, torch.randn(3)).traced
    assert traced.records[0].compiled.reference is None


def test_the_log_and_the_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGWELD_CACHE", "0")
    monkeypatch.setenv("MAGWELD_DEBUG", "1")
    monkeypatch.setenv("MAGWELD_DUMP_DIR", str(tmp_path / "dump"))
    done = subprocess.run(
        [sys.executable, "-c", LOG], capture_output=True, text=True, check=True
    )
    assert "compiled in" in done.stderr
    folders = {path.name.partition("-")[0] for path in (tmp_path / "dump").iterdir()}
    assert folders == {"graph", "cpu"}
    names = {path.name for path in (tmp_path / "dump").rglob("*.mlir")}
    assert any("form-tile-graph" in name for name in names)


def test_a_traced_program_without_a_graph_is_left_alone() -> None:
    traced = trace(lambda: 3)
    assert (traced(), traced()) == (3, 3)
