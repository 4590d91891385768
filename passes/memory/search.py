"""Owns the search for a plan whose code takes no more than the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator

from magweld.diagnostics import MagweldError

# Plans that are tried: the first one has no tiles at all.
MOST_PLANS = 8
# Share of the budget that a plan aims at which is made for less than the last one.
AIM = 0.95
# Share of the budget that the first plan with tiles aims at: scheduling tiles takes
# seconds, and plans know neither what kernels allocate nor how buffers lie.
FIRST_AIM = 0.85


class BudgetSearch:
    """Gives the budgets to plan with, until the code of a plan fits the real one.

    What a plan takes is only known once its code is there. A plan that takes too much
    is made again for less, one that is impossible for more.
    """

    def __init__(self, budget: int) -> None:
        """Begin with no tiles, then with most of the budget."""
        self._budget = budget
        self._next: int | None = 0
        self._too_little = 0
        self._too_much: int | None = None
        self._least_taken: int | None = None
        self._refusal: MagweldError | None = None

    def __iter__(self) -> Iterator[int]:
        """Yield budgets to plan with, 0 for no limit."""
        for _ in range(MOST_PLANS):
            if self._next is None:
                return
            yield self._next

    def takes(self, taken: int) -> None:
        """Note what the code of the last plan takes: too much."""
        known = self._least_taken
        self._least_taken = taken if known is None else min(known, taken)
        planned = self._next
        if not planned:
            self._next = max(1, int(FIRST_AIM * self._budget))
            return
        self._too_much = planned
        self._aim(int(AIM * planned * self._budget / taken))

    def refused(self, error: MagweldError) -> None:
        """Note that there is no plan for the last budget."""
        self._refusal = error
        self._too_little = self._next or 0
        self._aim(0)

    def _aim(self, wanted: int) -> None:
        """Take the wanted budget, or the middle of what was not tried yet."""
        most = self._too_much
        if most is None:
            # After most of the budget all of it; more there is not.
            more = self._too_little < self._budget
            self._next = self._budget if more else None
        elif self._too_little < wanted:
            self._next = wanted
        else:
            middle = math.isqrt(max(1, self._too_little) * most)
            apart = most - self._too_little > most // 50
            self._next = middle if apart and self._too_little < middle else None

    def error(self) -> MagweldError:
        """Return what to raise when no plan was found."""
        if self._refusal is not None and self._least_taken is None:
            return self._refusal
        reason = f"the best plan found takes {self._least_taken}"
        if self._refusal is not None:
            reason = f"{reason}; for less: {self._refusal}"
        return MagweldError(
            f"memory-budget: no plan takes at most {self._budget} bytes, {reason}"
        )
