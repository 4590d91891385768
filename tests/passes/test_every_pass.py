"""Every pass, on modules that it was not made for: a module, or one located error."""

from __future__ import annotations

from pathlib import Path

import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.diagnostics import MagweldError, Severity, UnsupportedError
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.infrastructure.registry import PASSES
from magweld.tools.driver import split_chunks

PASSES_FOLDER = Path(__file__).parents[2] / "lit_tests" / "passes"
# The first modules of each file: what other passes take, at every stage.
SAMPLES = tuple(
    chunk.text()
    for path in sorted(PASSES_FOLDER.rglob("*.mlir"))
    for chunk in split_chunks(path.read_text())[:2]
)


@pytest.mark.parametrize("name", PASSES.names())
def test_a_pass_changes_a_module_or_says_where_it_cannot(name: str) -> None:
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        complaints = [found for text in SAMPLES if (found := complaint(name, text))]
    assert complaints == []


def complaint(name: str, text: str) -> str:
    """Run a pass on a module; return its error if that is none for users."""
    try:
        module = ir.Module.parse(text)
    except ir.MLIRError:
        return ""  # of the files that are about such modules
    try:
        run_pipeline(Pipeline((PASSES.get(name)(),)), module)
    except MagweldError as error:
        return "" if says_where(error) else str(error)
    return ""


def says_where(error: MagweldError) -> bool:
    """Return whether an error is one for users, at a place in the module."""
    if isinstance(error, UnsupportedError):
        return True
    places = [d.position for d in error.diagnostics if d.severity is Severity.ERROR]
    return "internal error" not in str(error) and any(places)
