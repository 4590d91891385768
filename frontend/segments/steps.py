"""Owns running one instruction of a suspended program, prepared for its form."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from magweld.frontend.segments.continuation import Sources
from magweld.frontend.segments.shape import (
    STOPPED,
    UNBOUND,
    Continuation,
    Form,
    FrameForm,
    Shape,
    Suspended,
    outlives,
)


class _Stop(NamedTuple):
    """Where a continuation stops.

    Attributes:
        shape: Form of the state that it gives there.
        live: Numbers of the slots that may be read from there on.
        unsure: Positions in the state of what may be unbound, or not read any more.
    """

    shape: Shape
    live: frozenset[int]
    unsure: tuple[int, ...]


class _Layer(NamedTuple):
    """A frame with its continuation.

    Attributes:
        frame: The frame before the instruction.
        continuation: Goes on there and stops behind.
        function: The function, if it is the same for all states.
        start: Where its values begin among those of the program.
        end: Where they end.
        stops: What is known about its stops.
    """

    frame: FrameForm
    continuation: Continuation
    function: FunctionType | None
    start: int
    end: int
    stops: tuple[_Stop, ...]


class _Behind(NamedTuple):
    """A form behind the instruction; which values of each frame belong to it."""

    form: Form
    kept: tuple[tuple[int, ...], ...]


Intern = Callable[[Form], Form]


class BreakStep:
    """Runs the instruction before which programs of one form are suspended."""

    def __init__(self, sources: Sources, form: Form, intern: Intern) -> None:
        """Prepare it.

        Args:
            intern: Returns the one form among equal ones.

        Raises:
            ValueError: A program cannot be suspended behind it.
        """
        self._intern = intern
        self._known: dict[tuple[Any, ...], _Behind] = {}
        start, layers = 0, []
        innermost = form.frames[-1]
        for frame in form.frames:
            end = start + frame.shape.size
            layers.append(_layer(sources, frame, frame is not innermost, start, end))
            start = end
        self._layers = tuple(layers)
        self._inner_first = tuple(reversed(layers))

    def run(self, values: list[Any]) -> Suspended | Any:
        """Run the instruction.

        Args:
            values: The state, which is taken out.

        Returns:
            The program behind it, or the result of the program when it has ended.
        """
        thunk: Any = None
        for layer in self._inner_first:
            given = values[layer.start : layer.end]
            if thunk is not None:
                given.append(thunk)
            function: Any = layer.function
            if function is None:
                function = layer.continuation.function(layer.frame.namespace, given)
            thunk = functools.partial(function, given)
        values.clear()
        pack = thunk()
        return self._behind(pack) if _is_pack(pack) else pack

    def _behind(self, pack: Any) -> Suspended:
        key: list[Any] = []
        parts: list[tuple[Any, ...]] = []
        for layer in self._layers:
            stop = layer.stops[pack[1]]
            inside = layer.continuation.calls and _is_pack(pack[-1])
            found = pack[2:-1] if inside else pack[2:]
            key += (pack[1], inside)
            key += [_standing(found[index]) for index in stop.unsure]
            parts.append(found)
            if not inside:
                break
            pack = pack[-1]
        known = self._known.get(tuple(key))
        if known is None:
            known = self._known[tuple(key)] = self._find(key, parts)
        state: list[Any] = []
        for kept, found in zip(known.kept, parts, strict=True):
            if len(kept) == len(found):
                state += found
            else:
                state += [found[index] for index in kept]
        return Suspended(known.form, state)

    def _find(self, key: list[Any], parts: list[tuple[Any, ...]]) -> _Behind:
        frames, everything = [], []
        given = iter(key)
        for layer, found in zip(self._layers, parts, strict=False):
            stop, inside = layer.stops[next(given)], next(given)
            gone = {
                index
                for index in stop.unsure
                if _is_gone(next(given), inside or stop.shape.slots[index] in stop.live)
            }
            entry, shape = layer.frame.shape, stop.shape
            count = len(shape.slots)
            kept = [index for index in range(count) if index not in gone]
            slots = tuple(shape.slots[index] for index in kept)
            state = Shape(shape.offset, slots, shape.stack)
            if inside:
                # The frame inside has stopped, too.
                state = Shape(entry.offset, slots, shape.stack[:-1])
            frames.append(FrameForm(layer.frame.code, layer.frame.namespace, state))
            everything.append((*kept, *range(count, len(found))))
        return _Behind(self._intern(Form(tuple(frames))), tuple(everything))


def steps_behind(sources: Sources, frame: FrameForm, calls: bool) -> Continuation:
    """Return the continuation of a frame that runs one instruction and stops.

    Args:
        frame: The frame before the instruction.
        calls: Whether the instruction is a call that has led to another frame.

    Raises:
        ValueError: It cannot stop there.
    """
    source, offset = sources.source(frame.code), frame.shape.offset
    stops = source.after(offset) if calls else source.behind(offset)
    return sources.make(frame.code, frame.shape, stops, calls)


def _layer(
    sources: Sources, frame: FrameForm, calls: bool, start: int, end: int
) -> _Layer:
    source = sources.source(frame.code)
    made = steps_behind(sources, frame, calls)
    stops = []
    for shape, bound in zip(made.stops, made.bound, strict=True):
        live = source.liveness.at(shape.offset)
        unsure = (n for n, s in enumerate(shape.slots) if s not in bound & live)
        stops.append(_Stop(shape, live, tuple(unsure)))
    function = None
    if not made.code.co_freevars:
        function = made.function(frame.namespace, ())
    return _Layer(frame, made, function, start, end, tuple(stops))


def _is_pack(value: Any) -> bool:
    return type(value) is tuple and len(value) > 0 and value[0] is STOPPED


def _standing(value: Any) -> bool | None:
    """Return whether the end of a value matters, None if there is none."""
    return None if value is UNBOUND else outlives(value)


def _is_gone(standing: bool | None, read: bool) -> bool:
    return standing is None or not (standing or read)
