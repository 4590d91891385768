"""The site: it builds without a warning, and the code on its pages runs as shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("index.md", "start.md", "migration.md", "recipes/*.md")
RUN = [page for pattern in PAGES for page in sorted(DOCS.glob(pattern))]
# A wheel of torchvision beside another build of torch; transformers imports it.
PRELUDE = f"""
import sys
sys.path.append({str(DOCS.parent / "examples")!r})
import torchvision_schemas
kept = torchvision_schemas.declare()
"""
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_site_builds_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    run = subprocess.run(
        [*command, str(DOCS), str(tmp_path)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "magweld.frontend.trace" in (tmp_path / "api.html").read_text()


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    blocks = CODE.findall(page.read_text())
    assert blocks
    # In a file: the front end looks up the lines of what it watches.
    script = tmp_path / "page.py"
    script.write_text("\n".join([PRELUDE, *blocks]))
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
