"""Owns the segments of one traced callable: where they begin, and their records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.records.cache import RecordCache
from magweld.frontend.records.policy import LiftingPolicy
from magweld.frontend.segments.form import Form, Suspended
from magweld.frontend.segments.program import Rest
from magweld.frontend.segments.sources import Sources
from magweld.frontend.segments.split import Places
from magweld.frontend.segments.steps import Step

# Forms of states at which recordings begin, for one traced callable.
MAX_SEGMENTS: Final = 64
# A program is left alone when this many recordings hold few operators each.
_TRIAL: Final = 8
_FEW_OPERATORS: Final = 2


class Segment:
    """A place where recordings begin, with the records that were made there."""

    def __init__(self, form: Form, lifting: LiftingPolicy) -> None:
        self.form = form
        self.cache = RecordCache(lifting)


class Segments:
    """The segments behind the breaks of one traced callable.

    Attributes:
        sources: Makes continuations.
        places: Where recordings are known to end.
        worthless: Whether the recordings hold too few operators.
    """

    def __init__(self, policy: Callable[[], LiftingPolicy]) -> None:
        """Set what gives a segment its own decisions about numbers."""
        self._policy = policy
        self.sources = Sources()
        self.places = Places(self.sources)
        self._forms: dict[tuple[Any, ...], Form] = {}
        self._steps: dict[Form, Step | None] = {}
        self._segments: dict[Form, Segment] = {}
        self._parts = 0
        self._operators = 0
        self.worthless = False

    @property
    def all(self) -> list[Segment]:
        """The segments in the order in which they were met."""
        return list(self._segments.values())

    def at(self, form: Form) -> Segment | None:
        """Return the segment that begins at a form of state, None if too many do."""
        known = self._segments.get(form)
        if known is None:
            form = self.intern(form)
            known = self._segments.get(form)
        if known is None and len(self._segments) < MAX_SEGMENTS:
            known = self._segments.setdefault(form, Segment(form, self._policy()))
        return known

    def intern(self, form: Form) -> Form:
        """Return the one form among equal ones."""
        return self._forms.setdefault(form.key, form)

    def rest(self, suspended: Suspended) -> Rest:
        """Return the rest of a suspended program."""
        return Rest(suspended, self.sources)

    def step(self, suspended: Suspended) -> Suspended | Any:
        """Run the instruction before which a program is suspended, by itself.

        Returns:
            The program behind it, or the result of the program when it has ended.
        """
        form = suspended.form
        known = self._steps.get(form)
        if known is None and form not in self._steps:
            form = self.intern(form)
            known = self._steps[form] = self._step(form)
        if known is None:
            return self.rest(suspended).run()
        return known.run(suspended.values)

    def _step(self, form: Form) -> Step | None:
        try:
            return Step(self.sources, form, self.intern)
        except ValueError:
            return None

    def tally(self, operators: int) -> bool:
        """Count the operators of a recording that ended at a break.

        Returns:
            Whether the recordings hold so few of them that they are not worth it; they
            are forgotten then.
        """
        self._parts += 1
        self._operators += operators
        few = self._operators < _FEW_OPERATORS * self._parts
        if self._parts >= _TRIAL and few:
            self.worthless = True
            self._segments = {}
        return self.worthless
