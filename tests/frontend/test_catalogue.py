"""The catalogue of refusals and its document say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from magweld.frontend.catalogue import CATALOGUE, SPLITTING, Break, StopRecordingError

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "breaks.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([a-z-]+)` \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_document_lists_every_refusal():
    rows = {name: (reason, hint) for name, reason, hint in ROW.findall(DOCUMENT)}
    table = {r.id: (r.reason, r.hint) for r in CATALOGUE.values()}
    assert rows == table


def test_every_refusal_is_raised_somewhere():
    sources = [
        path.read_text(encoding="utf-8")
        for path in (ROOT / "frontend").rglob("*.py")
        if path.name != "catalogue.py"
    ]
    text = "\n".join(sources)
    unused = [name for name in CATALOGUE if f'"{name}"' not in text]
    assert unused == []


def test_every_raised_id_exists():
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "frontend").rglob("*.py")
        if "importer" not in path.parts
    )
    used = set(re.findall(r'StopRecordingError\(\s*"([a-z-]+)"', text))
    used |= set(re.findall(r'CATALOGUE\["([a-z-]+)"\]', text))
    assert used <= set(CATALOGUE)


def test_break_explains_itself():
    item = Break(CATALOGUE["native-call"], "print", "model.py:3")
    assert str(item) == (
        "native-call at model.py:3: a native function without annotation was called:"
        " print (keep it out of the traced part, or annotate it)"
    )


def test_unknown_id_is_an_error():
    with pytest.raises(KeyError):
        StopRecordingError("no-such-refusal")


def test_the_document_names_the_breaks_that_split_a_program():
    text = DOCUMENT[: DOCUMENT.index("| id |")]
    paragraph = text[text.index("These are") : text.index("Where no split")]
    assert set(re.findall(r"`([a-z-]+)`", paragraph)) == SPLITTING
    assert set(CATALOGUE) > SPLITTING
