"""Owns what a session tells the part that follows the branches of a run."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.events import Observe

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


class Control(Protocol):
    """What follows the branches of a run; may let an exception of its own through.

    Attributes:
        scopes: What is open now, empty most of the time.
        unguarded: Frame and jump of a branch that the run is in and no record tells.
    """

    scopes: list[Any]
    unguarded: tuple[Observer, Row] | None

    def arrive(self, observer: Observer, row: Row) -> None:
        """Take note of the next instruction, when a scope is open."""

    def enter(self, frame: FrameType) -> Observe | None:
        """Return what observes a frame of its own."""

    def leave(self, observer: Observer) -> None:
        """Take note that a frame is left."""

    def resumed(self, observer: Observer) -> None:
        """Take note that a suspended frame goes on.

        Raises:
            StopRecordingError: It must not.
        """

    def release(self) -> None:
        """Forget the run, which is over."""

    def stopping(self, reason: str) -> None:
        """Take note that the recording ends."""
