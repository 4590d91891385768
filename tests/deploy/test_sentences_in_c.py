"""The example of a C program: sentence embeddings as torch computes them, no Python."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.whole
def test_a_c_program_embeds_sentences(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    whole: bool,
) -> None:
    if not shutil.which("cc"):
        pytest.skip("no C compiler cc")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = importlib.import_module("sentences_in_c")
    # It compares the results itself.
    if whole:
        example.main(tmp_path)
    else:
        example.main(tmp_path, layers=1, levels=("x86-64-v3",))
    assert "as from Python: True" in capsys.readouterr().out
    ldd = ["ldd", tmp_path / "sentences"]
    linked = subprocess.run(ldd, check=True, capture_output=True, text=True).stdout
    assert "libc.so" in linked
    assert not re.search("python|torch|LLVM", linked)
