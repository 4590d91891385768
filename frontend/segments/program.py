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
from magweld.frontend.segments.form import Suspended
from magweld.frontend.segments.sources import Sources

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


@dataclass(frozen=True)
class Resumption:
    """A suspended program as a call.

    Attributes:
        function: Continuation of the outermost frame.
        args: Its arguments; the last one continues the frame inside, if there is one.
        made: Functions and callables of the frames inside.
    """

    function: FunctionType
    args: tuple[Any, ...]
    made: tuple[Any, ...]

    def run(self) -> Any:
        """Go on until the end of the program."""
        return self.function(*self.args)


def resumption(sources: Sources, suspended: Suspended) -> Resumption:
    """Return the call that goes on with a suspended program."""
    made: list[Any] = []
    thunk: Any = None
    function: Any = None
    args: tuple[Any, ...] = ()
    for frame, values in reversed(list(suspended.form.split(suspended.values))):
        calls = thunk is not None
        rest = sources.make(frame.code, frame.shape, (), calls)
        args = (*values, thunk) if calls else values
        function = rest.function(frame.namespace, args)
        thunk = functools.partial(function, *args)
        made += (function, thunk)
    return Resumption(function, args, tuple(made[:-2]))


class Program(Protocol):
    """Something that runs, with or without observation."""

    @property
    def arguments(self) -> Arguments:
        """What its guards begin with."""

    @property
    def begins(self) -> str:
        """File and line behind a break, "" for a call."""

    def run(self) -> Any:
        """Run it to its end."""

    def observe(self, session: Session, events: EventSource) -> Any:
        """Run it to its end, observed by a session.

        Raises:
            StopRecordingError: Another tool holds the interpreter's events.
        """


@dataclass(frozen=True)
class Call:
    """A call of the traced callable."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def arguments(self) -> Arguments:
        """See `Program.arguments`."""
        return Arguments(self.args, self.kwargs)

    @property
    def begins(self) -> str:
        """See `Program.begins`."""
        return ""

    def run(self) -> Any:
        """See `Program.run`."""
        return self.function(*self.args, **self.kwargs)

    def observe(self, session: Session, events: EventSource) -> Any:
        """See `Program.observe`."""
        return session.run(events, self.function, self.args, self.kwargs)


@dataclass(frozen=True)
class Rest:
    """The rest of a suspended program."""

    suspended: Suspended
    sources: Sources

    @property
    def arguments(self) -> Arguments:
        """See `Program.arguments`."""
        names = tuple(self.suspended.form.names())
        return Arguments(self.suspended.values, {}, names)

    @property
    def begins(self) -> str:
        """See `Program.begins`."""
        return self.suspended.form.where

    def run(self) -> Any:
        """See `Program.run`."""
        return resumption(self.sources, self.suspended).run()

    def observe(self, session: Session, events: EventSource) -> Any:
        """See `Program.observe`."""
        roots = tuple(zip(self.arguments.names, self.suspended.values, strict=True))
        call = resumption(self.sources, self.suspended)
        resumed = Resumed(roots, call.args, call.made)
        return session.go_on(events, call.function, resumed)
