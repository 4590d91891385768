"""Owns what can be run and recorded: a call, or the rest of a suspended program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from magweld.frontend.guards.derive import Arguments
from magweld.frontend.monitor.events import EventSource
from magweld.frontend.monitor.hooks import Resumed
from magweld.frontend.segments.continuation import Sources
from magweld.frontend.segments.shape import Suspended, take_first

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


@dataclass(frozen=True)
class Resumption:
    """A suspended program as a call.

    Attributes:
        function: Continuation of the outermost frame.
        given: What it takes: the values of its state, and what continues the frame
            inside, if there is one.
        made: What the frames inside go on with: functions, lists, callables.
    """

    function: FunctionType
    given: list[Any]
    made: tuple[Any, ...]

    def run(self) -> Any:
        """Go on until the end of the program."""
        return self.function(self.given)


def resumption(sources: Sources, suspended: Suspended) -> Resumption:
    """Return the call that goes on with a suspended program; takes its values."""
    made: list[Any] = []
    function: Any = None
    given: list[Any] = []
    parts = [take_first(suspended.values, size) for size in suspended.form.sizes]
    for frame, part in zip(reversed(suspended.form.frames), parts[::-1], strict=True):
        inner = function is not None
        if inner:
            thunk = functools.partial(function, given)
            made += (function, given, thunk)
            part.append(thunk)
        rest = sources.make(frame.code, frame.shape, (), inner)
        function, given = rest.function(frame.namespace, part), part
    return Resumption(function, given, tuple(made))


class Program(Protocol):
    """Something that runs, with or without observation."""

    @property
    def arguments(self) -> Arguments:
        """What its guards begin with."""

    @property
    def begins(self) -> str:
        """File and line behind a break, "" for a call."""

    def run(self) -> Any:
        """Run it to its end, once."""

    def copy(self) -> Program:
        """Return what can be run beside it."""

    def observe(self, session: Session, events: EventSource) -> Any:
        """Run it to its end, observed by a session.

        Raises:
            StopRecordingError: Another tool holds the interpreter's events.
        """


@dataclass(frozen=True)
class TracedCall:
    """A call of the traced callable."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.args, self.kwargs)

    @property
    def begins(self) -> str:
        return ""

    def run(self) -> Any:
        return self.function(*self.args, **self.kwargs)

    def copy(self) -> TracedCall:
        return self

    def observe(self, session: Session, events: EventSource) -> Any:
        return session.run(events, self.function, self.args, self.kwargs)


@dataclass(frozen=True)
class Rest:
    """The rest of a suspended program."""

    suspended: Suspended
    sources: Sources

    @property
    def arguments(self) -> Arguments:
        names = tuple(self.suspended.form.names())
        return Arguments(self.suspended.values, {}, names)

    def copy(self) -> Rest:
        form, values = self.suspended
        return Rest(Suspended(form, list(values)), self.sources)

    @property
    def begins(self) -> str:
        return self.suspended.form.where

    def run(self) -> Any:
        return resumption(self.sources, self.suspended).run()

    def observe(self, session: Session, events: EventSource) -> Any:
        known = self.arguments
        call = resumption(self.sources, self.copy().suspended)
        first = self.suspended.form.sizes[0]
        # Guards are made of the values if the recording gets that far.
        state = (known.names, self.suspended.values, first)
        return session.go_on(
            events, call.function, Resumed(*state, call.given, call.made)
        )
