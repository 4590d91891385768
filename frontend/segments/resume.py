"""Owns going on: the frames of a suspended program, built anew and run."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from magweld.frontend.segments.form import Form, FrameForm, Suspended
from magweld.frontend.segments.shape import STOPPED, Continuation, Shape, outlives
from magweld.frontend.segments.sources import Sources


@dataclass(frozen=True)
class Resumption:
    """A suspended program as a call.

    Attributes:
        function: Continuation of the outermost frame.
        args: Its arguments; the last one continues the frame inside, if there is one.
        made: Functions and callables of the frames inside.
        layers: The frames with their continuations, the outermost first.
    """

    function: FunctionType
    args: tuple[Any, ...]
    made: tuple[Any, ...]
    layers: tuple[tuple[FrameForm, Continuation], ...]

    def run(self) -> Any:
        """Go on until the end of the program, or the stops of the continuations."""
        return self.function(*self.args)


def resumption(sources: Sources, suspended: Suspended, stops: bool) -> Resumption:
    """Return the call that goes on with a suspended program.

    Args:
        sources: Makes the continuations.
        suspended: The program.
        stops: Whether every frame stops behind its first instruction.

    Raises:
        ValueError: What the state is behind the first instruction depends on the path.
    """
    made: list[Any] = []
    layers: list[tuple[FrameForm, Continuation]] = []
    thunk: Any = None
    function: Any = None
    args: tuple[Any, ...] = ()
    for frame, values in reversed(list(suspended.form.split(suspended.values))):
        calls = thunk is not None
        source = sources.source(frame.code)
        leads = source.after if calls else source.behind
        ends = leads(frame.shape.offset) if stops else ()
        step = sources.make(frame.code, frame.shape, ends, calls)
        args = (*values, thunk) if calls else values
        function = step.function(frame.namespace, args)
        thunk = functools.partial(function, *args)
        made += (function, thunk)
        layers.insert(0, (frame, step))
    return Resumption(function, args, tuple(made[:-2]), tuple(layers))


def step(sources: Sources, suspended: Suspended) -> Suspended | Any:
    """Run the instruction before which a program is suspended.

    Returns:
        The program behind it, or the result of the program when it has ended.

    Raises:
        ValueError: The program cannot be suspended behind it; nothing has run.
    """
    run = resumption(sources, suspended, stops=True)
    result = run.run()
    frames: list[FrameForm] = []
    state: list[Any] = []
    for frame, continuation in run.layers:
        stopped = continuation.stopped(result)
        if stopped is None:
            return result
        values, shape = stopped.values, stopped.shape
        if continuation.calls and _is_pack(values[-1]):
            # The frame inside has stopped, too.
            shape = Shape(frame.shape.offset, shape.slots, shape.stack[:-1])
            result = values[-1]
            values = values[:-1]
            frames.append(FrameForm(frame.code, frame.namespace, shape))
            state += values
            continue
        shape, values = _relevant(sources, frame, shape, values)
        frames.append(FrameForm(frame.code, frame.namespace, shape))
        state += values
        break
    return Suspended(Form(tuple(frames)), tuple(state))


def _is_pack(value: Any) -> bool:
    return type(value) is tuple and len(value) > 0 and value[0] is STOPPED


def _relevant(
    sources: Sources, frame: FrameForm, shape: Shape, values: tuple[Any, ...]
) -> tuple[Shape, tuple[Any, ...]]:
    """Leave out variables that are not read any more."""
    live = sources.source(frame.code).liveness.at(shape.offset)
    count = len(shape.slots)
    kept = [
        index
        for index in range(count)
        if shape.slots[index] in live or outlives(values[index])
    ]
    slots = tuple(shape.slots[index] for index in kept)
    found = (*(values[index] for index in kept), *values[count:])
    return Shape(shape.offset, slots, shape.stack), found
