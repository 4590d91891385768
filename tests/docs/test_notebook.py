"""The notebook: it is one, holds no results, and its cells run one after the other."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "kernels.ipynb"


def test_the_cells_of_the_notebook_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    assert not any(cell["outputs"] for cell in code)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code):
        # As Jupyter does: each cell is a file of its own that linecache knows.
        source, file = "".join(cell["source"]), f"<cell {number}>"
        lines = len(source), None, source.splitlines(True), file
        monkeypatch.setitem(linecache.cache, file, lines)
        exec(compile(source, file, "exec"), names)
    assert "2 records" in capsys.readouterr().out
