"""Owns sizes that are worked out behind the calls, before the run that needs them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.lifting.outline import Outline
from magweld.frontend.operators.torch_state import torch_state
from magweld.paced import Paced

if TYPE_CHECKING:
    from magweld.frontend.lifting.environment import SymbolicEnvironment

# Seconds that a call may work on sizes, and that pass from one such call to the next.
_SLICE: Final = 0.02
_PAUSE: Final = 0.01


class SizesAwaitedError(Exception):
    """The sizes of a run are to be worked out behind the calls; nothing is captured.

    Attributes:
        outline: What they follow from.
    """

    def __init__(self, outline: Outline) -> None:
        super().__init__("the sizes are not worked out yet")
        self.outline = outline


@dataclass(frozen=True)
class KnownSizes:
    """What a run that lifts sizes finds of them.

    Attributes:
        environment: Has what a run before it has made of symbols; None if none has.
        may_wait: Whether the run may be for the outline of its sizes alone.
    """

    environment: SymbolicEnvironment | None = None
    may_wait: bool = False


class SizesAhead:
    """Has the sizes of the next lifted run worked out, a little in each call.

    Args:
        wanted: Paths of what is lifted.
        outline: What the sizes follow from.
        clock: Seconds.
    """

    def __init__(
        self,
        wanted: frozenset[str],
        outline: Outline,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.wanted = wanted
        self._clock = clock
        self._modes = _modes()
        work = functools.partial(_propagate, outline)
        self._work: Paced[SymbolicEnvironment] | None = Paced(work, _modes)
        self._environment: SymbolicEnvironment | None = None
        self._worked_at = clock()

    @property
    def environment(self) -> SymbolicEnvironment | None:
        """What a run may take; None before the end, and if nothing came of it."""
        known = self._environment
        return known if known is not None and known.is_for_others else None

    @property
    def has_failed(self) -> bool:
        """Whether it was of no use, and would not be the next time."""
        return self.is_over and self.environment is None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be worked out."""
        return self._work is None

    def go_on(self) -> None:
        """Work a little within a call."""
        if self._clock() - self._worked_at >= _PAUSE:
            self.wait(_SLICE)

    def wait(self, seconds: float) -> None:
        """Work for some seconds at most.

        It is over without a result where a caller has other modes of torch than the one
        that began.
        """
        work = self._work
        if work is None:
            return
        fits = _modes() == self._modes
        if fits and not work.go_on(seconds):
            self._worked_at = self._clock()
            return
        if isinstance(work.outcome, tuple):
            (self._environment,) = work.outcome
        self._work = None


def _modes() -> tuple[Any, ...]:
    """Return what the work takes from its thread: modes, but for those of autograd."""
    _grad, _inference, *others = torch_state()
    return tuple(others)


def _propagate(outline: Outline) -> SymbolicEnvironment:
    # Symbolic shapes take long to import.
    from magweld.frontend.lifting.symbolic import propagate

    return propagate(outline)
