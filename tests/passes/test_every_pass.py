"""Every pass, on modules that it was not made for: a module, or one located error."""

from __future__ import annotations

import contextlib
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


@pytest.fixture(scope="module")
def samples() -> list[ir.Module]:
    """The modules, which each pass takes copies of: parsing takes longer than most."""
    found = []
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        for text in SAMPLES:
            # Some files are about text that is no module.
            with contextlib.suppress(ir.MLIRError):
                found.append(ir.Module.parse(text))
    return found


@pytest.mark.parametrize("name", PASSES.names())
def test_a_pass_changes_a_module_or_says_where_it_cannot(
    name: str, samples: list[ir.Module], whole: bool
) -> None:
    # Usually a pass takes every third module, its neighbours in the list the others.
    first = [*PASSES.names()].index(name) % 3
    taken = samples if whole else samples[first::3]
    with samples[0].context, ir.Location.unknown():
        complaints = [found for one in taken if (found := complaint(name, one))]
    assert complaints == []


def complaint(name: str, sample: ir.Module) -> str:
    """Run a pass on a copy; return its error if that is none for users."""
    module = sample.operation.clone()
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
