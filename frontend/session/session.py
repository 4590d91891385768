"""Owns one monitored run: the observers, the RefGraph and the reason to stop."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from magweld.frontend.catalogue import SPLITTING, Break, StopRecordingError
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.monitor.annotation import AnnotationTable, Entry, NativeCall
from magweld.frontend.monitor.code_table import CodeTables, Row
from magweld.frontend.monitor.events import EventSource, Observe, end_alone
from magweld.frontend.monitor.hooks import (
    OperatorLayer,
    Resumed,
    SessionHooks,
    Shown,
    Site,
    sites_of,
)
from magweld.frontend.monitor.observer import Observer, call_entry
from magweld.frontend.monitor.stack import FrameReader
from magweld.frontend.rules.class_checks import AbstractAnswers
from magweld.frontend.rules.natives import apply_entry
from magweld.frontend.session.admission import (
    attach_shadow,
    begin_call,
    begin_rest,
    check_classes,
    connect,
    explain_frame,
    is_opaque,
    is_own,
    lift_arguments,
    lift_rest,
)
from magweld.frontend.state.nodes import Where
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.steps import Call

if TYPE_CHECKING:
    from magweld.frontend.control.branches import Branches


def _nothing_to_take() -> bool:
    return True


class Session:
    """One monitored run; receives the events of its thread.

    Attributes:
        graph: What the run has met and read.
        operators: The tensor side of the run.
        stopped: Why the recording ended early; None while it goes on.
        effects: Steps that repeat what the run does outside of the program.
        opaque_caller: Observer whose current instruction runs unobserved code.
        trail: Where the recording ended: the observed frames from the outermost.
        hooks: What else takes part in the run.
        withdraw: Takes away what observes the run beside the events; False if it is at
            work.
        abstract_answers: What abstract base classes have answered in it.
        shown: Functions that are observed below unobserved code, the innermost last.

    Args:
        wanted: Paths of the reads to lift; their values are followed if there are any.
        changing: Paths of data that keeps changing.
    """

    def __init__(
        self,
        tables: CodeTables,
        reader: FrameReader,
        annotations: AnnotationTable,
        wanted: frozenset[str] = frozenset(),
        changing: frozenset[str] = frozenset(),
    ) -> None:
        self.tables = tables
        self.reader = reader
        self.annotations = annotations
        self.operators = OperatorLayer()
        self.graph = RefGraph(locate=self.where, changing=changing)
        if wanted:
            self.graph.lifting = Lifting(wanted, self.graph)
        self.stopped: Break | None = None
        self.effects: list[Call] = []
        self.opaque_caller: Observer | None = None
        self.registered: set[int] = set()
        self.control: Branches | None = None
        self._events: EventSource | None = None
        self.trail: tuple[Site, ...] = ()
        self.hooks = SessionHooks()
        self.withdraw = _nothing_to_take
        self._is_withdrawn = False
        self._transforms = 0
        self.abstract_answers = AbstractAnswers()
        self.shown: list[Shown] = []
        self._active: list[Observer] = []
        self._observers: dict[FrameType, Observer] = {}
        self._resumed: list[Any] = []
        self._alone: dict[FrameType, CodeType] = {}

    def run(
        self,
        events: EventSource,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return what a call returns, observed.

        Raises:
            StopRecordingError: Another tool holds the events; nothing has run.
        """
        check_classes((*args, *kwargs.values()))
        if self.graph.lifting is not None:
            lift_arguments(self.graph.lifting, args, kwargs)
        begin_call(self, function, args, kwargs)
        return self._observe(events, function, args, kwargs)

    def go_on(
        self, events: EventSource, function: FunctionType, resumed: Resumed
    ) -> Any:
        """Return what the rest of a program returns, observed.

        Args:
            events: Who tells about frames and instructions.
            function: Continuation of the outermost frame.

        Raises:
            StopRecordingError: Another tool holds the interpreter's events.
        """
        self._resumed = resumed.values
        if self.graph.lifting is not None:
            lift_rest(self.graph.lifting, resumed)
        begin_rest(self, function, resumed)
        args, kwargs = (resumed.given,), dict[str, Any]()
        self.graph.adopt(args)
        self.graph.adopt(kwargs)
        return self._observe(events, function, args, kwargs)

    def _observe(
        self,
        events: EventSource,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        self.graph.constant(call_entry)
        call = functools.partial(call_entry, function, args, kwargs)
        self._events = events
        try:
            result = events.run(self, call)
        finally:
            self._events = None
            if self.control is not None:
                self.control.release()
        if not events.is_intact() and self.stopped is None:
            # A debugger that came stays; one of the program is likely gone by now.
            stays = sys.gettrace() is not None
            self.stop(
                StopRecordingError("tracer-active" if stays else "tracer-replaced")
            )
        return result

    def stop(self, stop: StopRecordingError) -> None:
        """End the recording; the program goes on unobserved."""
        if self.stopped is None:
            self._note_end(stop)
            self.release()

    def _note_end(self, stop: StopRecordingError) -> None:
        if self.control is not None:
            self.control.stopping(str(stop))
        self.stopped = Break(stop.refusal, stop.detail, str(self.where() or ""))
        self.trail = sites_of(self._active, self.control)

    def split(
        self, observer: Observer, row: Row, stack: list[Any], stop: StopRecordingError
    ) -> None:
        """End the recording before an instruction."""
        within = self.control and (self.control.scopes or self.control.unguarded)
        # In front of the call of the program itself there is nothing to keep.
        outside = observer.code is call_entry.__code__
        splits = stop.refusal.id in SPLITTING and not within and not outside
        if self.stopped is not None or not splits:
            self.stop(stop)
            return
        self._note_end(stop)
        try:
            self.hooks.split(observer, row, stack)
        finally:
            self.release()

    def release(self) -> None:
        """Let go of everything: what the program drops from now on must go at once."""
        for observer in self._observers.values():
            observer.release()
        self._observers.clear()
        self._active.clear()
        self._alone.clear()
        self.shown.clear()
        self.graph.release()
        self.operators.release()
        if self.graph.lifting is not None:
            self.graph.lifting.release()
        self._resumed.clear()
        # What splits the run knows the session: a cycle that would keep values.
        self.hooks = SessionHooks()
        self.finish_withdrawal()

    def finish_withdrawal(self) -> None:
        """Leave a program that is recorded no more alone, as far as that can be.

        A mode of torch cannot be left from within what it has got: the next event that
        comes then does it.
        """
        if self.stopped is None or self._is_withdrawn or not self.withdraw():
            return
        self._is_withdrawn, self.withdraw = True, _nothing_to_take
        if self._events is not None:
            self._events.end()

    def begin_transform(self, frame: FrameType) -> None:
        """Take note that the instruction of a frame runs a transform of `torch.func`.

        Where the recording ends in it, something of it stays until the outermost one
        has ended.
        """
        if not self.operators.is_transforming:
            self._transforms, self.operators.is_transforming = id(frame), True

    def end_transform(self, frame: FrameType) -> None:
        """Take note that the instruction of a frame has ended, whatever it was."""
        if self._transforms == id(frame):
            self._transforms, self.operators.is_transforming = 0, False

    def close(self) -> None:
        """Do the same at the end of a run, also with its operators and tensors."""
        self.release()
        self.withdraw = _nothing_to_take
        self.operators = OperatorLayer()
        if self.graph.lifting is not None:
            self.graph.lifting.close()

    def where(self) -> Where | None:
        """Return the user's instruction that is running."""
        observer = self.current
        return None if observer is None else observer.where()

    @property
    def in_branch(self) -> bool:
        """Whether a branch or a loop on a tensor is open, or one is on trial."""
        return self.control is not None and bool(self.control.scopes)

    @property
    def only_guards_reads(self) -> bool:
        """Whether what is read is guarded, and no loop or branch asks for more."""
        graph = self.graph
        followed = graph.lifting is not None and graph.lifting.in_loop
        chosen = graph.choices.merged or graph.choices.sealed
        return not (followed or chosen or self.in_branch)

    @property
    def current(self) -> Observer | None:
        """Observer of the innermost observed frame."""
        return self._active[-1] if self._active else None

    @property
    def calling(self) -> Observer | None:
        """The same, but for frames that are passed by: it has called what runs now."""
        observers = reversed(self._active)
        return next((observer for observer in observers if not observer.passes), None)

    @property
    def caller(self) -> Observer | None:
        """Observer of the frame that the innermost observed frame goes back to."""
        return self._active[-2] if len(self._active) > 1 else None

    def apply(self, observer: Observer, entry: Entry, call: NativeCall) -> None:
        """Record reads and writes of a native call as an annotation tells them."""
        apply_entry(observer, entry, call)

    def active(self) -> list[Observer]:
        """Return the observers of the observed frames, the innermost last."""
        return list(self._active)

    def run_aside(self, call: Callable[[], Any]) -> None:
        """Call a function whose frames may end unobserved, and forget them."""
        active, opaque_caller = list(self._active), self.opaque_caller
        for observer in active:
            # Variables are read behind its back.
            observer.drawn = ()
        try:
            call()
        finally:
            for observer in self._active[len(active) :]:
                self._forget(observer)
            self._active[:] = active
            self.opaque_caller = opaque_caller

    def pause_events(self) -> bool:
        """Look at no frame for a while; return whether there is something to resume."""
        return self._events is not None and self._events.pause()

    def resume_events(self) -> None:
        """Go on observing after a pause, or an exception that came out of an event."""
        goes_on = self.stopped is None or not self._is_withdrawn
        if self._events is not None and goes_on:
            self._events.resume()

    def call_observed(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function within a pause whose frames are to be observed."""
        self.resume_events()
        try:
            return function(*args)
        finally:
            self.pause_events()

    def leave_alone(self, frame: FrameType, inner: CodeType) -> None:
        """Do not observe the frame of a generator: what it reads is recorded.

        Args:
            frame: Its frame.
            inner: Code of the only frames of Python that it begins, and they begin.
        """
        self._alone[frame] = inner

    def _is_alone(self, frame: FrameType) -> bool:
        if frame in self._alone:
            return True
        outer = frame.f_back
        inner = None if outer is None else self._alone.get(outer)
        if inner is not frame.f_code:
            return False
        self._alone[frame] = inner
        return True

    def admit(self, frame: FrameType, observer: Observer) -> None:
        """Take an observer for a frame that is about to run, observed."""
        self._observers[frame] = observer
        self._active.append(observer)
        self.opaque_caller = None

    def enter(self, frame: FrameType) -> Observe | None:
        if self.control is not None:
            observe = self.control.enter(frame)
            if observe is not None:
                return observe
        if not self._follows(frame):
            self.finish_withdrawal()
            return None
        if is_own(frame.f_code) or (self._alone and self._is_alone(frame)):
            return None
        try:
            observer = self._observers.get(frame)
            if observer is None:
                if is_opaque(self, frame):
                    self.opaque_caller = self.current
                    return None
                observer = self._admit(frame)
            else:
                observer.resume(frame.f_lasti)
                if self.control is not None and self.control.scopes:
                    self.control.resumed(observer)
        except StopRecordingError as stop:
            self.stop(stop)
            return None
        except Exception as error:
            # A fault of the monitor must not reach the program that it watches.
            self.stop(StopRecordingError("monitor-error", repr(error)))
            return None
        self._active.append(observer)
        return self._observe_of(observer)

    def _follows(self, frame: FrameType) -> bool:
        """Return whether frames are observed now, or this one that is to be shown."""
        if self.stopped is not None or self.opaque_caller is None:
            return self.stopped is None
        if not self.shown or self.opaque_caller is not self.shown[-1].observer:
            return False
        is_shown = self.reader.function(frame) is self.shown[-1].function
        if is_shown:
            self._show(True)
        return is_shown

    def _show(self, begins: bool) -> None:
        """Observe from here on, or no more."""
        self.opaque_caller = None if begins else self.shown[-1].observer
        self.operators.follow(begins)

    def _observe_of(self, observer: Observer) -> Observe:
        """Return what is told about the frame of an observer."""
        if observer.passes:
            return end_alone
        begins = self.hooks.begins(observer.frame.f_code)
        return observer.observe_from(begins) if begins else observer.observe

    def leave(self, frame: FrameType) -> None:
        self.end_transform(frame)
        observer = self._observers.get(frame)
        if observer is None or observer not in self._active:
            return
        if observer.shadow is not None and self.stopped is None:
            observer.shadow.returned()
        while self._active.pop() is not observer:
            pass
        if self.stopped is None:
            self._check_end(observer)
            if self.shown and self.current is self.shown[-1].observer:
                self._show(False)
        if not observer.is_suspended:
            observer.end()
            self._forget(observer)

    def _forget(self, observer: Observer) -> None:
        # A frame that is kept would keep the local variables.
        if observer.frame is not None:
            del self._observers[observer.frame]
            observer.release()

    def _check_end(self, observer: Observer) -> None:
        raised = observer.if_raised()
        if raised is not None:
            self.stop(raised)
        elif self.control is not None and self.control.scopes:
            try:
                self.control.leave(observer)
            except StopRecordingError as stop:
                self.stop(stop)

    def _admit(self, frame: FrameType) -> Observer:
        function = self.reader.function(frame)
        if self.shown and self.current is self.shown[-1].observer:
            self.shown[-1].begin(frame)
        explain_frame(self, frame, function)
        rows = self.hooks.rows(frame.f_code, self.tables.table(frame.f_code).rows)
        observer = Observer(self, frame, rows)
        observer.function = function
        if self.current is not None:
            observer.pass_by(self.current)
        if self.graph.lifting is not None and not observer.passes:
            attach_shadow(self, self.graph.lifting, observer)
        connect(self, observer, frame)
        self._observers[frame] = observer
        return observer
