"""Generated programs: results and effects are those of eager, whatever changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from magweld.frontend.guards.guard import Category
from magweld.frontend.guards.listing import Listing

from .generate import generate
from .grammars import GRAMMARS
from .minimise import blocks, minimise
from .program import Program
from .running import run_program

# Usually, and with `--whole`; `--fuzz-programs` for more.
PROGRAMS = {
    "state": (30, 40),
    "control": (12, 20),
    "values": (14, 20),
    "ambient": (20, 30),
    "data": (12, 20),
}


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_generated_programs(
    request: pytest.FixtureRequest, grammar: str, whole: bool
) -> None:
    asked = request.config.getoption("--fuzz-programs", default=None)
    count = asked or PROGRAMS[grammar][whole]
    first = request.config.getoption("--fuzz-seed", default=None) or 0
    totals: Counter[str] = Counter()
    for seed in range(first, first + count):
        program = generate(grammar, seed)
        report = run_program(program)
        assert not report.failure, explanation(program)
        totals.update(report.stats)
    assert totals["hits"] > totals["calls"] // 8, totals


def test_a_backward_that_raises_leaves_what_each_graph_leaves() -> None:
    # It raises in one of several nodes in eager, and in the only one in halves.
    report = run_program(generate("state", 3_000_709))
    assert not report.failure


def explanation(program: Program) -> str:
    """Return the smallest program that fails, and how."""
    smallest = minimise(program, lambda item: bool(run_program(item).failure))
    return f"{run_program(smallest).failure}\n{smallest}"


def test_a_failing_program_is_cut_down() -> None:
    """What is left of a program in which a loop "fails" is that loop and one call."""

    def fails(program: Program) -> bool:
        called = {step.function for step in program.steps}
        functions = [item for item in program.functions if item.name in called]
        return any("while" in line for item in functions for line in item.lines())

    programs = [generate("control", seed) for seed in range(40)]
    failing = [program for program in programs if fails(program)]
    assert len(failing) > 5
    for program in failing:
        smallest = minimise(program, fails)
        assert sum(len(block.statements) for block in blocks(smallest)) == 1, smallest
        assert len(smallest.steps) == len(smallest.functions) == 1


@pytest.mark.parametrize("category", [Category.VALUE, Category.CONTENT])
def test_a_missing_guard_is_found(
    category: Category, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Listing.guard

    def guard(self: Listing, kind: Category, *parts: Any, **more: Any) -> None:
        if kind is category:
            more["test"] = None
        original(self, kind, *parts, **more)

    monkeypatch.setattr(Listing, "guard", guard)
    assert any(run_program(generate("state", seed)).failure for seed in range(100))
