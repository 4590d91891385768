"""The site: it builds without a warning, and the code on its pages runs as shown."""

from __future__ import annotations

import io
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from pages import DOCS, MARK, Page, run
from sphinx.application import Sphinx

PAGES = (
    *("index.md", "start.md", "migration.md", "recipes/*.md"),
    *("tutorial.md", "adding_a_pass.md", "adding_a_rule.md", "devices.md"),
)
RUN = [page for pattern in PAGES for page in sorted(DOCS.glob(pattern))]
EXAMPLES = DOCS.parent / "examples"
# Pages of models that others stand for take as long as all other pages.
LONG = ("images", "audio", "derivatives", "generation", "encoder", "diffusion")
REWRITE = "run `python tests/docs/pages.py`"


def test_the_site_builds_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    # In this process, which has imported what autodoc looks at.
    warnings = io.StringIO()
    doctrees = tmp_path / ".doctrees"
    site = Sphinx(
        *(DOCS, DOCS, tmp_path, doctrees, "html"), status=None, warning=warnings
    )
    site.build()
    assert (site.statuscode, warnings.getvalue()) == (0, "")
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
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.whole] * (path.stem in LONG))
        for path in RUN
    ],
    ids=[path.stem for path in RUN],
)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Page.read(path)
    assert page.script
    page.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run(page, path.stem, tmp_path)
    printed = capsys.readouterr().out.split(MARK)
    said = page.printed()
    assert said == {number: printed[number] for number in said}, REWRITE


def test_the_c_program_of_a_page_needs_no_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which("cc"):
        pytest.skip("no C compiler cc")
    page = Page.read(DOCS / "recipes" / "without_python.md")
    page.write_files(tmp_path)
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    exec(page.blocks[0].text, names)
    (command,) = (b.text for b in page.blocks if b.text.startswith("R=$("))
    # The command of this environment.
    ours = f'magweld() {{ "{sys.executable}" -m magweld.tools.magweld_cli "$@"; }}\n'
    subprocess.run(["sh", "-euc", ours + command], check=True)
    main = tmp_path / "main"
    said = subprocess.run(main, check=True, capture_output=True, text=True).stdout
    x = torch.zeros(4, 64)
    x[0, 0] = 1.0
    assert float(said) == pytest.approx(names["model"](x)[0, 0].item(), abs=1e-4)
    ldd = ["ldd", main]
    linked = subprocess.run(ldd, check=True, capture_output=True, text=True).stdout
    assert "libc.so" in linked
    assert not re.search("python|torch|LLVM", linked)
