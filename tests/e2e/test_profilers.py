"""Traced programs in the profilers of torch and in perf: kernels and calls by name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace


class Block(nn.Module):
    """Generated kernels, an operator that torch runs, and another kernel behind."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.nn.functional.gelu(self.up(x))
        return self.down(torch.sort(hidden).values).tanh()


def names(run: Callable[[], Any]) -> Counter[str]:
    with torch.profiler.profile() as profile:
        run()
    return Counter(e.name for e in profile.events() if e.name.startswith("magweld"))


def test_a_hit_shows_the_program_its_kernels_and_its_calls() -> None:
    module, x = Block().eval(), torch.randn(4, 8)
    fast = trace(module)
    with torch.no_grad():
        fast(x)
        expected = fast(x)
        found = names(lambda: [fast(x), fast(x)])
        result = fast(x)
    assert found["magweld: Block"] == 2
    assert found["magweld::sort (torch)"] == 2
    assert found["magweld::mm+add+gelu"] == 2
    assert found["magweld::mm+add+tanh"] == 2
    assert torch.equal(result, expected)
    assert fast.stats()["hits"] == 4


def test_a_call_that_is_observed_is_a_range_as_well() -> None:
    fast = trace(Block().eval(), backend="eager")
    assert names(lambda: fast(torch.randn(4, 8))) == {"magweld: Block": 1}
    assert fast.stats()["records"] == 1


def test_what_a_program_raises_leaves_its_range() -> None:
    def fails(x: Tensor) -> Tensor:
        raise ValueError("no")

    fast = trace(fails, backend="eager")

    def run() -> None:
        with pytest.raises(ValueError, match="no"):
            fast(torch.ones(2))
        torch.ones(2).add(1)

    with torch.profiler.profile() as profile:
        run()
    (add,) = [event for event in profile.events() if event.name == "aten::add"]
    assert add.cpu_parent is None


def test_backward_kernels_have_names() -> None:
    module, x = Block(), torch.randn(4, 8)
    fast = trace(module)
    for _ in range(2):
        fast(x).sum().backward()
    found = names(lambda: fast(x).sum().backward())
    assert found["magweld: Block"] == 1
    assert any("tanh_backward" in name or "sub" in name for name in found), found


def test_checked_calls_are_ranges_as_well() -> None:
    fast = trace(Block().eval(), backend="eager", check=True)
    x = torch.randn(4, 8)
    with torch.no_grad():
        fast(x)
        assert names(lambda: fast(x)) == {"magweld: Block": 1}
    assert fast.stats()["checked"] == 1


PROGRAM = """
import os
import torch
from magweld.frontend import trace

def program(x, w):
    for _ in range(4):
        x = torch.tanh(x @ w)
    return x

fast = trace(program)
x, w = torch.randn(256, 256), torch.randn(256, 256)
for _ in range(50):
    fast(x, w)
print(os.getpid(), flush=True)
"""


def perf_works(folder: Path) -> bool:
    if shutil.which("perf") is None:
        return False
    command = ["perf", "record", "-e", "cpu-clock", "-o", str(folder / "try"), "true"]
    return subprocess.run(command, capture_output=True).returncode == 0


def test_perf_shows_kernels_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not perf_works(tmp_path):
        pytest.skip("perf cannot be used here")
    monkeypatch.setenv("MAGWELD_PERF", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    data = str(tmp_path / "data")
    record = ["perf", "record", "-F", "499", "-e", "cpu-clock", "-o", data]
    run = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run([*record, *run], check=True, capture_output=True, text=True)
    mapped = Path(f"/tmp/perf-{int(ran.stdout.split()[0])}.map")
    report = ["perf", "report", "-i", data, "--stdio", "--no-demangle"]
    report += ["--sort", "symbol"]
    done = subprocess.run(report, check=True, capture_output=True, text=True)
    mapped.unlink()
    assert "magweld::mm+tanh" in done.stdout


def test_no_map_is_written_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MAGWELD_PERF", raising=False)
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    before = path.read_bytes() if path.exists() else None  # of another test
    fast = trace(lambda x: torch.sinh(x) + 3)
    fast(torch.ones(5))
    fast(torch.ones(5))
    assert fast.stats()["hits"] == 1
    assert (path.read_bytes() if path.exists() else None) == before
