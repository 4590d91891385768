"""The benchmark of loops: its programs run, CPU seconds of children count."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CHECKS = """
import io, json, subprocess, sys
sys.path.insert(0, sys.argv[1])
import torch
from rich.console import Console
import loops

with torch.no_grad():
    inputs = {name: torch.rand(c.shape) + 0.5 for name, c in loops.CASES.items()}
    results = {name: c.make()(inputs[name]) for name, c in loops.CASES.items()}
leaves = torch.utils._pytree.tree_leaves
finite = {
    name: all(bool(tensor.isfinite().all()) for tensor in leaves(result))
    for name, result in results.items()
}
before = loops.cpu_seconds()
burn = "import time\\nwhile time.process_time() < 0.5: pass"
child = subprocess.Popen([sys.executable, "-c", burn + "\\ninput()"],
                         stdin=subprocess.PIPE, text=True)
while loops.cpu_seconds() - before < 0.4 and child.poll() is None: pass
running = loops.cpu_seconds() - before
child.communicate("\\n")
ended = loops.cpu_seconds() - before
text = io.StringIO()
Console(file=text, width=120).print(loops.table_of([
    {"case": "a", "peer": "magweld", "first_cpu_seconds": 7.25, "speedup": 2.0,
     "times": {"eager": {"min_ms": 4.0}, "magweld": {"min_ms": 2.0}}},
    {"case": "b", "peer": "torch.compile", "error": "no compiler"},
]))
print(json.dumps([finite, running, ended, text.getvalue()]))
"""


def test_programs_seconds_and_table() -> None:
    run = subprocess.run(
        [sys.executable, "-c", CHECKS, str(BENCHMARKS)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    finite, running, ended, text = json.loads(run.stdout.splitlines()[-1])
    assert set(finite.values()) == {True}
    assert 0.4 <= running <= ended
    assert "7.2" in text
    assert "2.00" in text
    assert "no compiler" in text
