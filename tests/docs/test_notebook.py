"""The notebook: it is one, holds no results, and its cells run one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "examples" / "kernels.ipynb"
# Cells are compiled as Jupyter does: each is a file of its own that linecache knows.
RUN_CELLS = """
import json, linecache, sys
names = {"__name__": "__main__"}
for number, source in enumerate(json.load(sys.stdin)):
    file = f"<cell {number}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), names)
"""


def test_the_cells_of_the_notebook_run() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    assert not any(cell["outputs"] for cell in code)
    run = subprocess.run(
        [sys.executable, "-c", RUN_CELLS],
        input=json.dumps(["".join(cell["source"]) for cell in code]),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "2 records" in run.stdout
