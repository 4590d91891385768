"""Owns what tuning decided for a unit, and where the decision comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from magweld.runtime.plans import MeasuredPlan

Origin = Literal["measured", "cache", "prediction"]


@dataclass(frozen=True)
class Outcome:
    """The decision for equal units.

    Attributes:
        origin: Measured now, measured before, or of the model alone.
        plan: What was measured; None if the passes plan the unit.
        reason: Why nothing was measured, "" where it was.
        is_final: Whether more time would change nothing.
    """

    origin: Origin
    plan: MeasuredPlan | None = None
    reason: str = ""
    is_final: bool = True

    def report(self, count: int) -> dict[str, Any]:
        """Return it as plain data; `count` units share it."""
        found: dict[str, Any] = {"units": count, "plan": self.origin}
        if self.plan is None:
            return {**found, "reason": self.reason}
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
