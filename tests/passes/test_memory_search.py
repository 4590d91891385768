"""Which budgets are planned with until what code takes fits the real one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from magweld.diagnostics import MagweldError
from magweld.passes.memory.search import MOST_PLANS, BudgetSearch

TOO_LITTLE = MagweldError("memory-budget: not possible")


def tried(budget: int, taken: Callable[[int], int | None]) -> tuple[list[int], bool]:
    """Return the budgets that are planned with, and whether one of them served.

    Args:
        budget: The real one.
        taken: What the plan for a budget takes, None if there is none.
    """
    search = BudgetSearch(budget)
    budgets = []
    for planned in search:
        budgets.append(planned)
        found = taken(planned)
        if found is None:
            search.refused(TOO_LITTLE)
        elif found <= budget:
            return budgets, True
        else:
            search.takes(found)
    with pytest.raises(MagweldError, match="memory-budget"):
        raise search.error()
    return budgets, False


def test_nothing_is_tiled_that_fits_as_it_is() -> None:
    assert tried(100, lambda planned: 80) == ([0], True)


def test_a_plan_that_takes_too_much_is_made_for_less() -> None:
    budgets, served = tried(1000, lambda planned: planned * 2 if planned else 9000)
    assert served
    assert budgets == [0, 850, 475]


def test_between_too_much_and_impossible_is_looked_as_well() -> None:
    def taken(planned: int) -> int | None:
        if planned == 0:
            return 9000
        return None if planned < 600 else planned * 3 // 2

    budgets, served = tried(1000, taken)
    assert served
    assert budgets[:2] == [0, 850]
    assert 600 <= budgets[-1] <= 666


def test_what_is_impossible_is_given_up() -> None:
    budgets, served = tried(1000, lambda planned: None if planned else 9000)
    assert (budgets, served) == ([0, 850, 1000], False)
    budgets, served = tried(1000, lambda planned: 2000)
    assert not served
    assert len(budgets) <= MOST_PLANS
