"""Owns the lengths of bars, linear and logarithmic, of values that are compared."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A bar for one value: 0 is no bar, 1 the longest one.

    Attributes:
        linear: Its length on a linear scale.
        logarithmic: Its length where each doubling adds that of the shortest bar.
    """

    linear: float
    logarithmic: float


class Scale:
    """The scale of bars that are compared with each other.

    Args:
        values: For all of which there may be bars.
    """

    def __init__(self, values: Iterable[float]) -> None:
        positive = [value for value in values if value > 0]
        self._least = min(positive, default=1.0)
        self._most = max(positive, default=1.0)

    def bar(self, value: float | None) -> Bar:
        """Return the bar of one of the values; none for what is not positive."""
        if value is None or value <= 0:
            return Bar(0.0, 0.0)
        return Bar(value / self._most, self._length(value) / self._length(self._most))

    def _length(self, value: float) -> float:
        return 1 + math.log2(value / self._least)
