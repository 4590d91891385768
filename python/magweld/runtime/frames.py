"""Owns the idle frames of a program, each with what runs the steps on it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from magweld.runtime.frame import Form, Frame
from magweld.runtime.tiling import Action

if TYPE_CHECKING:
    from magweld.runtime.whole_calls import WholeCall

# A call that finds no idle frame makes one; more than this many are not kept, so
# that a burst of concurrent calls does not hold its arenas for ever.
_IDLE_FRAMES = 4


@dataclass(eq=False)
class BoundFrame:
    """A frame with what runs the steps on it.

    Attributes:
        frame: The frame.
        actions: These calls.
        named: The same, each step by itself and under a name, once profilers ask.
        served: The form of the latest call, if it may be one function.
        threads: How many of torch it was for.
        whole: That function.
    """

    frame: Frame
    actions: tuple[Action, ...]
    named: tuple[Action, ...] | None = None
    served: Form | None = None
    threads: int = 0
    whole: WholeCall | None = None


class Frames:
    """The idle frames of a program, by what orders the work of calls.

    It does not know the program, which ends with the last that refers to it.
    """

    def __init__(self) -> None:
        self._idle: dict[Hashable, deque[BoundFrame]] = defaultdict(
            partial(deque, maxlen=_IDLE_FRAMES)
        )

    def take(self, queue: Hashable | None) -> BoundFrame | None:
        """Return an idle frame, None if there is none."""
        try:
            # Popping the latest keeps one arena warm in the caches.
            return self._idle[queue].pop()
        except IndexError:
            return None

    def put_back(self, queue: Hashable | None, bound: BoundFrame) -> None:
        """Keep a frame for a later call, unless memory must not be used again."""
        if queue is not None:
            self._idle[queue].append(bound)
