"""Owns what tuning decided for a unit, and where the decision comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from magweld.artifact import Program
from magweld.runtime.plans import MeasuredPlan

# What tells in reports, and so in the programs that caches keep, that a unit is open.
_OPEN_AFTER: Final = "open_after"

Origin = Literal["measured", "cache", "prediction"]


@dataclass(frozen=True)
class Outcome:
    """The decision for equal units.

    Attributes:
        origin: Measured now, measured before, or of the model alone.
        plan: What was measured; None if the passes plan the unit.
        reason: Why nothing was measured, "" where it was.
        open_after: Seconds that there were, if more may decide otherwise; else None.
    """

    origin: Origin
    plan: MeasuredPlan | None = None
    reason: str = ""
    open_after: float | None = None

    def report(self, count: int) -> dict[str, Any]:
        """Return it as plain data; `count` units share it."""
        found: dict[str, Any] = {"units": count, "plan": self.origin}
        if self.plan is None:
            rest = {} if self.open_after is None else {_OPEN_AFTER: self.open_after}
            return {**found, "reason": self.reason, **rest}
        measured = dict(self.plan.measured)
        model, *_ = measured.values()
        return {
            **found,
            "chosen": self.plan.label,
            "seconds": measured[self.plan.label],
            "seconds_of_prediction": model,
            "measured": measured,
        }


def summary(outcomes: Mapping[str, Outcome], counts: Mapping[str, int]) -> Any:
    """Return the report of a tuned program, one entry for equal units."""
    return [outcomes[unit].report(count) for unit, count in counts.items()]


def would_stay(program: Program, seconds: float) -> bool:
    """Tell whether tuning for so many seconds would leave a tuned program as it is.

    What was open after fewer seconds is worth going on with; after as many it is not,
    since every process would spend them anew.
    """
    units = program.report.get("tuning", ())
    return all(unit.get(_OPEN_AFTER, seconds) >= seconds for unit in units)
