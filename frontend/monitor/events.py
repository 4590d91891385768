"""Owns the event sources: who tells a sink about frames and instructions."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType, MethodType
from typing import Any, Protocol, Self

from magweld.frontend.catalogue import StopRecordingError

TraceFunction = Callable[[FrameType, str, Any], Any]
Observe = Callable[[FrameType, int], None]


def end_alone(frame: FrameType, offset: int) -> None:
    """Stand for what to call before each instruction, where only the end is told."""


class Sink(Protocol):
    """Receives the events of one thread; none of its methods raises."""

    def enter(self, frame: FrameType) -> Observe | None:
        """Take note of a frame that starts or resumes.

        Returns:
            What to call before each instruction, `end_alone` if only the end of the
            frame is to be told, None to leave the frame alone.
        """

    def leave(self, frame: FrameType) -> None:
        """Take note of a frame that returns, yields or unwinds."""


class EventSource:
    """Runs a function while a sink observes it."""

    def check_free(self) -> None:
        """Check that the events can be had now.

        Raises:
            StopRecordingError: Another tool holds the interpreter's events.
        """
        raise NotImplementedError

    def run(self, sink: Sink, call: Callable[[], Any]) -> Any:
        """Return what `call` returns; the sink sees every frame below it.

        Raises:
            StopRecordingError: Another tool holds the interpreter's events.
        """
        raise NotImplementedError

    def is_intact(self) -> bool:
        """Return whether the source was installed until the end of the run."""
        return True

    def pause(self) -> bool:
        """Tell nothing for a while, where that makes the program faster.

        Returns:
            Whether there is something to `resume`.
        """
        return False

    def resume(self) -> None:
        """Go on after a pause, or after an exception that a sink let through."""

    def end(self) -> None:
        """Tell nothing any more, before the end of the run."""
        self.pause()


class TraceEvents(EventSource):
    """`sys.settrace` with opcode events; for CPython 3.11."""

    def __init__(self) -> None:
        self._sink: Sink | None = None
        self._intact = True

    def check_free(self) -> None:
        if sys.gettrace() is not None:
            raise StopRecordingError("tracer-active", type(sys.gettrace()).__name__)

    def run(self, sink: Sink, call: Callable[[], Any]) -> Any:
        self.check_free()
        self._sink = sink
        with CollectorPause():
            sys.settrace(self._enter)
            try:
                return call()
            finally:
                self._intact = self._is_on()
                if self._intact:
                    sys.settrace(None)

    def is_intact(self) -> bool:
        return self._intact

    def pause(self) -> bool:
        on = self._is_on()
        if on:
            sys.settrace(None)
        return on

    def resume(self) -> None:
        """See `EventSource.resume`; an exception has removed the tracer as well."""
        if sys.gettrace() is None:
            sys.settrace(self._enter)

    def _is_on(self) -> bool:
        # Another tracer may be any object, with a comparison of its own.
        tracer = sys.gettrace()
        return type(tracer) is MethodType and tracer == self._enter

    def _enter(self, frame: FrameType, event: str, arg: Any) -> TraceFunction | None:
        sink = self._sink
        assert sink is not None, "events arrive while a run is on"
        observe = sink.enter(frame)
        if observe is None:
            return None
        frame.f_trace_opcodes = observe is not end_alone
        frame.f_trace_lines = False
        leave = sink.leave

        def trace(frame: FrameType, event: str, arg: Any) -> TraceFunction:
            if event == "opcode":
                observe(frame, frame.f_lasti)
            elif event == "return":
                leave(frame)
            return trace

        return trace


class MonitoringEvents(EventSource):
    """`sys.monitoring` with instruction events; for CPython 3.12 and later.

    Nobody else can take a tool id away, the callbacks stay registered, and to switch
    events takes longer than they do.
    """

    def __init__(self) -> None:
        self._observers: dict[FrameType, Observe] = {}
        # By identity: code objects of one content are equal, and each has its events.
        self._codes: dict[int, CodeType] = {}
        self._sink: Sink | None = None
        self._thread = 0
        self._tool = -1

    def check_free(self) -> None:
        _free_tool()

    def run(self, sink: Sink, call: Callable[[], Any]) -> Any:
        self._sink = sink
        self._thread = threading.get_ident()
        self._tool = _free_tool()
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        monitoring.use_tool_id(self._tool, "magweld")
        events = monitoring.events
        table = {
            events.PY_START: self._start,
            events.PY_RESUME: self._start,
            events.PY_THROW: self._start,
            events.INSTRUCTION: self._instruction,
            events.PY_RETURN: self._leave,
            events.PY_YIELD: self._leave,
            events.PY_UNWIND: self._leave,
        }
        for event, callback in table.items():
            monitoring.register_callback(self._tool, event, callback)
        frames = sum(e for e in table if e != events.INSTRUCTION)
        with CollectorPause():
            monitoring.set_events(self._tool, frames)
            try:
                return call()
            finally:
                self._uninstall(monitoring, list(table))

    def end(self) -> None:
        """See `EventSource.end`."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        monitoring.set_events(self._tool, 0)
        for code in self._codes.values():
            monitoring.set_local_events(self._tool, code, 0)
        self._codes.clear()
        self._observers.clear()

    def _uninstall(self, monitoring: Any, events: list[int]) -> None:
        self.end()
        for event in events:
            monitoring.register_callback(self._tool, event, None)
        monitoring.free_tool_id(self._tool)

    def _start(self, code: CodeType, offset: int, *_: Any) -> None:
        if threading.get_ident() != self._thread or self._sink is None:
            return
        frame = sys._getframe(1)
        observe = self._sink.enter(frame)
        if observe is None:
            return
        self._observers[frame] = observe
        if observe is not end_alone and id(code) not in self._codes:
            self._codes[id(code)] = code
            monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
            kind = monitoring.events.INSTRUCTION
            monitoring.set_local_events(self._tool, code, kind)

    def _instruction(self, code: CodeType, offset: int) -> None:
        if threading.get_ident() != self._thread:
            return
        frame = sys._getframe(1)
        observe = self._observers.get(frame)
        if observe is not None:
            observe(frame, offset)

    def _leave(self, code: CodeType, offset: int, *_: Any) -> None:
        if threading.get_ident() != self._thread or self._sink is None:
            return
        frame = sys._getframe(1)
        if self._observers.pop(frame, None) is not None:
            self._sink.leave(frame)


class CollectorPause:
    """Holds back garbage collection.

    Finalizers would be observed as part of the program, and collections in between
    take longer than the monitoring itself.
    """

    def __init__(self) -> None:
        self._was_enabled = False

    def __enter__(self) -> Self:
        self._was_enabled = gc.isenabled()
        gc.disable()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """Let the collector run again; what the program switches then stays."""
        if self._was_enabled:
            self._was_enabled = False
            gc.enable()


def _free_tool() -> int:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    for tool in (4, 3):
        if monitoring.get_tool(tool) is None:
            return tool
    raise StopRecordingError("tool-busy")


def event_source() -> EventSource:
    """Return the source for this interpreter."""
    return TraceEvents() if sys.version_info < (3, 12) else MonitoringEvents()
