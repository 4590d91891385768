"""Owns going on: the frames of a suspended program, built anew and run."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from magweld.frontend.segments.form import Suspended
from magweld.frontend.segments.sources import Sources


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
    """Return the call that goes on with a suspended program.

    Args:
        sources: Makes the continuations.
        suspended: The program.
    """
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
