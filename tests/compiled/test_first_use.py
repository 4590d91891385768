"""What torch imports when it is first used so: within the first call, no later one."""

from __future__ import annotations

import subprocess
import sys

# Calls after the first one go on with the preparation until the code is there. A full
# collection comes when there are a quarter more objects than the last one has left.
_CALLS = """
import gc, sys, time
import torch
from magweld import frontend

_LARGE = ("torch", "torch_mlir", "sympy")
fast, x = frontend.trace(torch.nn.Linear(4, 4).eval()), torch.ones(2, 4)
with torch.no_grad():
    fast(x)
    known, objects = set(sys.modules), len(gc.get_objects())
    deadline = time.monotonic() + 300
    while True:
        fast(x)
        stats = fast.stats()
        if stats["hits"] > stats["torch_hits"] and not stats["pending"]:
            break
        if time.monotonic() > deadline:
            sys.exit(f"the code is never there: {stats}")
new = sorted(sys.modules.keys() - known)
print([name for name in new if name.partition(".")[0] in _LARGE])
print(4 * len(gc.get_objects()) < 5 * objects)
"""


def test_later_calls_wait_for_no_import_and_no_collection() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CALLS], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[]", "True"]
