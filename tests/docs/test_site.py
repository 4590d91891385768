"""The site: it builds without a warning, and the code on its pages runs as shown."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("index.md", "start.md", "migration.md", "recipes/*.md")
RUN = [page for pattern in PAGES for page in sorted(DOCS.glob(pattern))]
EXAMPLES = DOCS.parent / "examples"
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_site_builds_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    run = subprocess.run(
        [*command, str(DOCS), str(tmp_path)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "magweld.frontend.trace" in (tmp_path / "api.html").read_text()


@pytest.fixture(scope="module")
def torchvision_operators() -> Iterator[None]:
    """Declare what torchvision lacks beside a CPU build of torch, as examples do."""
    if hasattr(torch.ops.torchvision, "nms"):
        yield
    else:
        declare = runpy.run_path(str(EXAMPLES / "torchvision_schemas.py"))["declare"]
        library = declare()
        yield
        del library


# In one process: each page has names of its own, while starting Python, torch, the
# packages of models and the compiler's workers once more would take longer than a page.
@pytest.mark.usefixtures("torchvision_operators")
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = CODE.findall(page.read_text())
    assert blocks
    # In a file: the front end looks up the lines of what it watches.
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
