"""Owns for how many calls the records of a cache rest that no call has fitted."""

from __future__ import annotations

from typing import Any, Final

# Calls until resting records are asked again, the first time, and how many times as
# many each further time, unless they have answered half of the calls since the last.
REST: Final = 100
_LONGER: Final = 4


class Resting:
    """How long records rest.

    Attributes:
        left: Calls for which they still rest. Who answers one of these counts it down.
        signature: Types of the arguments of the calls that they rest for.
        is_known: Whether code of their own tells such calls.
    """

    def __init__(self) -> None:
        self.left = 0
        self.signature: tuple[Any, ...] = ((), ())
        self.is_known = False
        self._length = REST // _LONGER
        self._counted = 0
        self._unanswered = 0
        self._hits = 0

    def note_unanswered(self) -> None:
        """Take note of a call that no record has answered while they were asked."""
        self._unanswered += 1

    def begin(self, signature: tuple[Any, ...], hits: int) -> int:
        """Have the records rest; return for how many calls.

        Args:
            signature: Types of the arguments of these.
            hits: Calls that the records have ever answered.
        """
        answered = hits - self._hits
        is_worth = answered >= self._unanswered
        self._length = REST if is_worth else self._length * _LONGER
        self._counted = self._length + self._counted - self.left
        self.left = self._length
        self.signature, self._hits = signature, hits
        return self._length

    def end(self) -> None:
        """Have the records asked again."""
        self._counted -= self.left
        self.left = self._unanswered = 0

    def take_call(self) -> None:
        """Count down a call that its own caller counts."""
        self.left -= 1
        self._counted -= 1

    def take_untold(self) -> int:
        """Return how many calls were counted down that nobody has counted yet."""
        left, counted = self.left, self._counted
        self._counted = left
        return counted - left
