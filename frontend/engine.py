"""Owns the engine, which answers calls from records, or runs and records."""

from __future__ import annotations

import functools
import math
import operator
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import nn
from torch._C import (
    _is_tracing,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
)
from torch._C._profiler import _RecordFunctionFast
from torch.compiler import is_dynamo_compiling
from torch.fx import _symbolic_trace

from magweld.frontend.annotations.user import UserAnnotation
from magweld.frontend.call_kinds import kind_of, kind_of_signature
from magweld.frontend.call_log import CallLog
from magweld.frontend.capture.capture import Outcome, capture
from magweld.frontend.catalogue import (
    CATALOGUE,
    PASSING,
    Break,
    StopRecordingError,
)
from magweld.frontend.eager_kinds import IsEager, Kind, eager_kinds
from magweld.frontend.explain import Recompile, explain
from magweld.frontend.guards.guard import Category
from magweld.frontend.lifting.ahead import KnownSizes, SizesAhead
from magweld.frontend.lifting.state import NEW_NUMBERS
from magweld.frontend.monitor.events import event_source
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.profitability import EAGER, HIT, Profitability
from magweld.frontend.records.backends import Backend
from magweld.frontend.records.cache import (
    RecordCache,
    Segments,
    Signature,
    signature_of,
)
from magweld.frontend.records.making import RecordMaker
from magweld.frontend.records.pace import RecordingPace
from magweld.frontend.records.policy import LiftingPolicy
from magweld.frontend.records.record import GraphFailedError, Record
from magweld.frontend.segments.program import Program, TracedCall
from magweld.frontend.segments.shape import Suspended


def watched() -> bool:
    """Return whether something else follows operators: a mode, a tracer, Dynamo.

    A hit would show it the operators of a graph, or none, in place of the program.
    """
    # In this order: a monitored run has a mode, and Dynamo knows no later question.
    return (
        _len_torch_function_stack() > 0
        or is_dynamo_compiling()
        or _len_torch_dispatch_stack() > 0
        or _is_tracing()
        or _symbolic_trace._is_fx_tracing_flag
    )


def _observers() -> tuple[Any, Any]:
    return sys.gettrace(), sys.getprofile()


def _left_until(end: float | None) -> float:
    """Return the seconds that are left until a moment; infinite if there is none."""
    return math.inf if end is None else max(0.0, end - time.monotonic())


def ignore_failure(failed: Record) -> None:
    """Take no note of a record whose graph has failed."""


class Held(Protocol):
    """What users hold of a program."""

    def _magweld_run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, unobserved."""


class Engine:
    """What answers the calls of one traced program.

    Attributes:
        target: The callable that is traced.
        is_eager: Whether a call that nothing else follows runs eagerly, see
            `eager_kinds`; None as long as no kind of calls does.
    """

    __slots__ = (
        "__weakref__",
        "_annotations",
        "_backend",
        "_cache",
        "_counts",
        "_lock",
        "_log",
        "_maker",
        "_pace",
        "_profit",
        "_segments",
        "is_eager",
        "target",
    )

    def __init__(
        self,
        target_callable: Callable[..., Any],
        backend: Backend,
        lifting: LiftingPolicy,
        annotations: tuple[UserAnnotation, ...] = (),
    ) -> None:
        self.target = target_callable
        self._annotations = annotations
        self._backend = backend
        self._cache = RecordCache(lifting)
        # One thread is monitored at a time.
        self._lock = threading.RLock()
        self._log = CallLog(target_callable)
        self._counts = self._log.counts
        self._maker = RecordMaker(backend, self._log.fell_back, self._log.add)
        self._segments = Segments(lifting.fresh)
        self._pace = RecordingPace()
        tiers = backend.tiers
        self._profit = Profitability(
            tiers.races, self._log.fell_back, is_busy=lambda: tiers.pending > 0
        )
        self.is_eager: IsEager | None = None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer from a record whose guards hold; otherwise run, observed.

        Nothing else follows the operators, see `watched`.
        """
        profit = self._profit
        if profit.is_open:
            kind = kind_of(args, kwargs)
            lost = profit.lost.get(kind)
            if lost is not None and lost.left > 0:
                if not lost.is_known:
                    self._know_lost()
                lost.left -= 1  # `_count_eager` counts it
                return self.target(*args, **kwargs)
            if kind not in profit.paying:
                return self._call_timed(args, kwargs, kind)
        failures: list[Any] = []
        for record in self._cache.records:
            verdict = record.program.check(args, kwargs)
            if type(verdict) is list:
                failures.clear()  # they hold tensors that the hit may let go of
                self._log.hit(self._cache, record, calls=1)
                if record.hits >= record.compared_from:
                    profit.compare_again(record)
                return self._hit(record, verdict, args, kwargs)
            failures.append((record, verdict))
        self._log.count("calls")
        call = TracedCall(self.target, args, kwargs)
        result = self._miss(self._cache, call, failures)
        return self._go_on(result) if type(result) is Suspended else result

    def call_profiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call as `call` does; profilers show it under the program's name."""
        with _RecordFunctionFast(f"magweld: {self._log.name}"):
            return self.call(args, kwargs)

    def _know_lost(self) -> None:
        """Have further calls of the kinds that run eagerly known by less."""
        lost = dict(self._profit.lost)
        for one in lost.values():
            one.is_known = True
        self.is_eager = eager_kinds(lost, isinstance(self.target, nn.Module))

    def _count_eager(self) -> None:
        """Count the calls that have run eagerly for good, which count themselves."""
        count = self._profit.take_eager()
        with self._log.lock:
            rested = self._cache.rest.take_untold()
            self._counts["calls"] += count + rested
            self._counts["eager"] += count
            self._counts["misses"] += rested

    def _call_timed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], kind: Kind
    ) -> Any:
        """Answer a call as `call` does, and find out whether that pays."""
        profit = self._profit
        lost = profit.lost.get(kind)
        if lost is not None and lost.attempt():
            # Attempts to time hits once more have come to nothing.
            self._log.count("calls", "eager")
            return self.target(*args, **kwargs)
        start = profit.clock()
        failures: list[Any] = []
        for record in self._cache.records:
            verdict = record.program.test(args, kwargs)
            if type(verdict) is list:
                times = profit.comparison(record, kind)
                if times is not None and times.way == EAGER:
                    verdict.clear()
                    return self._run_timed(record, kind, args, kwargs)
                verdict = record.program.draw(verdict)
            if type(verdict) is list:
                failures.clear()
                break
            failures.append((record, verdict))
        else:
            self._log.count("calls")
            call = TracedCall(self.target, args, kwargs)
            result = self._miss(self._cache, call, failures)
            return self._go_on(result) if type(result) is Suspended else result
        self._log.hit(self._cache, record, calls=1)
        result = self._hit(record, verdict, args, kwargs)
        if times is not None and record.was_final:
            times.sizes = record.lifted and record.lifted.sizes_of_all
            profit.measure(record, kind, HIT, start, result)
        return result

    def _run_timed(
        self, record: Record, kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the program eagerly in place of a hit, timed."""
        profit = self._profit
        self._log.count("calls", "eager")
        start = profit.clock()
        kind_of(args, kwargs)  # as calls that run eagerly for good have to ask
        result = self.target(*args, **kwargs)
        profit.measure(record, kind, EAGER, start, result)
        return result

    def _hit(
        self,
        record: Record,
        fetched: list[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        try:
            result = record.run(fetched)
        except GraphFailedError as error:
            reason = Break(CATALOGUE[error.refusal], str(error), "")
        else:
            if record.ends is None:
                return result
            # What goes on lets values end when the program does.
            fetched.clear()
            note = functools.partial(self._note_failure, record, args, kwargs)
            return self._go_on(Suspended(record.ends, result), note)
        fetched.clear()
        self._doubt(record)
        result = self._run_instead(TracedCall(self.target, args, kwargs), reason)
        self._note_failure(record, args, kwargs, record)
        return result

    def _note_failure(
        self,
        record: Record,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        failed: Record,
    ) -> None:
        """Take note of a hit that has failed in a call that a record has begun."""
        self._profit.note_failure(record, kind_of(args, kwargs), failed)

    @property
    def records(self) -> list[Record]:
        """Records, the most recently used first; those behind breaks at the end."""
        segments = [segment.cache for segment in self._segments.all]
        with self._log.lock:
            caches = [self._cache, *segments]
            return [one for cache in caches for one in (*cache.records, *cache.resting)]

    @property
    def breaks(self) -> list[Break]:
        """Why calls were not captured or compiled, in order of appearance."""
        return list(self._log.breaks)

    @property
    def recompiles(self) -> list[Recompile]:
        """The last calls that no record answered, with the guards that failed."""
        return list(self._log.recompiles)

    def stats(self) -> dict[str, Any]:
        """Return counts: calls, hits, misses, eager, records, graphs, breaks.

        Of the records that there are now: `compilations` and `compile_seconds`, forms
        that were dropped (`evictions`), and of the hits those that torch has answered
        (`torch_hits`): as long as no code is compiled, and where torch is faster.
        `eager` counts calls that ran eagerly because a hit takes longer, `pending` is
        how many graphs are being compiled behind the calls.
        """
        records = self.records
        self._count_eager()
        return {
            **self._log.counts,
            "records": len(records),
            "compilations": sum(record.compilations for record in records),
            "compile_seconds": sum(record.compile_seconds for record in records),
            "evictions": sum(record.evictions for record in records),
            "torch_hits": sum(record.torch_hits for record in records),
            "pending": self._backend.tiers.pending,
        }

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for what is being done behind the calls: sizes, then compilation.

        Args:
            seconds: How long at most; None waits until all is compiled.

        Returns:
            Whether nothing is being compiled any more.
        """
        end = None if seconds is None else time.monotonic() + seconds
        segments = [segment.cache for segment in self._segments.all]
        for cache in (self._cache, *segments):
            if cache.ahead is not None:
                cache.ahead.wait(_left_until(end))
        return self._backend.tiers.wait(None if end is None else _left_until(end))

    def explain(self, recompiles: bool = False) -> str:
        """Return what was captured, under which conditions, and what was refused.

        Args:
            recompiles: Also list the last calls that no record answered, with the guard
                of each record that failed: path, old and new value, file and line.
        """
        log = self._log
        text = explain(self.records, log.breaks, log.recompiles, recompiles)
        return "\n".join([text, *self._profit.describe()])

    def call_watched(
        self, held: Held, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the program where something else follows the operators.

        Args:
            held: What the caller knows of the program.
        """
        # Inside of a monitored run this call is a part of that run.
        depth = _len_torch_function_stack()
        mode = torch._C._get_function_stack_at(depth - 1) if depth else None
        if isinstance(mode, OperatorRecorder):
            return self.target(*args, **kwargs)
        if is_dynamo_compiling():
            return held._magweld_run(*args, **kwargs)
        self._log.count("calls", "misses")
        self._log.add(Break(CATALOGUE["torch-mode"], "", ""))
        return held._magweld_run(*args, **kwargs)

    def _doubt(self, record: Record) -> None:
        """Take note that a hit has failed: the truths that it assumes may change.

        If they do so often, no recording assumes any more.
        """
        known = self._segments
        if not record.assumes or not known.doubt(record):
            return
        with self._log.lock:
            for cache in (self._cache, *(segment.cache for segment in known.all)):
                cache.records = [one for one in cache.records if not one.assumes]

    def _run_instead(self, program: Program, reason: Break) -> Any:
        # An operator raises for the values of now: eager tells how, and when.
        result = program.run()
        self._log.add(reason)
        return result

    def _go_on(
        self, program: Suspended, note: Callable[[Record], None] = ignore_failure
    ) -> Any:
        """Run a program from where a recording ended; return its result.

        Args:
            note: Gets the record whose graph has failed, if one has.
        """
        while True:
            observers = _observers()
            behind = self._segments.step(program)
            if type(behind) is not Suspended:
                return behind
            segment = self._segments.at(behind.form)
            rest = self._segments.rest(behind)
            # What the instruction has installed is to see the program itself.
            same = all(map(operator.is_, observers, _observers()))
            if segment is None or watched() or not same:
                return rest.run()
            answer = self._answer(segment.cache, rest, behind.values, {}, note)
            if type(answer) is not Suspended:
                return answer
            # A record leaves the state that it began with.
            behind.values.clear()
            program = answer

    def _answer(
        self,
        cache: RecordCache,
        program: Program,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        note: Callable[[Record], None] = ignore_failure,
    ) -> Suspended | Any:
        """Return where a program has got to, or its result when it has ended."""
        failures = []
        for record in cache.records:
            verdict = record.program.check(args, kwargs)
            if type(verdict) is not list:
                failures.append((record, verdict))
                continue
            failures.clear()
            self._log.hit(cache, record)
            try:
                result = record.run(verdict)
            except GraphFailedError as error:
                reason = Break(CATALOGUE[error.refusal], str(error), "")
                break
            return result if record.ends is None else Suspended(record.ends, result)
        else:
            return self._miss(cache, program, failures)
        verdict.clear()
        self._doubt(record)
        result = self._run_instead(program, reason)
        note(record)
        return result

    def _miss(self, cache: RecordCache, program: Program, failures: list[Any]) -> Any:
        self._log.count("misses")
        if torch._C._are_functorch_transforms_active():
            # Its tensors have no memory; their class alone makes every record miss.
            self._log.add(
                Break(CATALOGUE["torch-mode"], "a transform of torch.func", "")
            )
            return program.run()
        signature = signature_of(program.arguments.args, program.arguments.kwargs)
        noted = None
        if failures:
            self._count_eager()
            noted = self._log.missed(cache, signature, failures, program.begins)
        if self._leaves_alone(cache, signature):
            return program.run()
        if cache.ahead is not None and not cache.ahead.is_over:
            # The next record is made when its sizes are known.
            cache.ahead.go_on()
            return program.run()
        obstacle = self._take_monitor()
        if obstacle is not None:
            self._log.add(obstacle)
            return program.run()
        outcome = None
        try:
            # Only where a record can be made does its absence tell about the program.
            if not failures or not self._log.gives_up(cache, signature, failures):
                outcome = self._record(cache, signature, program, failures, noted)
        finally:
            self._lock.release()
        if outcome is None:
            return program.run()
        if outcome.error is None:
            return outcome.result
        try:
            raise outcome.error
        finally:
            # With the traceback it would be a cycle, which keeps the frames.
            del outcome

    def _leaves_alone(self, cache: RecordCache, signature: Signature) -> bool:
        """Return whether no record is made for a call that none has answered."""
        if self._segments.worthless or cache.has_given_up(signature):
            self._leave_alone(cache, signature)
            return True
        if cache.is_resting and not cache.rests_for(signature):
            # A call of another kind, which one of them may fit.
            self._log.wake(cache)
            self._know_resting(cache)
            return True
        if not cache.is_resting and self._pace.allows(cache.added, cache.in_vain):
            return False
        self._log.add(Break(CATALOGUE["many-records"], "", ""))
        self._leave_alone(cache, signature)
        return True

    def _leave_alone(self, cache: RecordCache, signature: Signature) -> None:
        """Take note of a call that no record has answered and none is made for."""
        self._count_eager()
        self._log.left_alone(cache, signature)
        self._know_resting(cache)

    def _know_resting(self, cache: RecordCache) -> None:
        """Have calls known by less for which all records rest, and others no more."""
        rest = cache.rest
        if cache is not self._cache or rest.is_known == cache.is_resting:
            return
        rest.is_known = not rest.is_known
        if rest.is_known:
            kinds = {kind_of_signature(rest.signature): rest}
            self.is_eager = eager_kinds(kinds, isinstance(self.target, nn.Module))
        else:
            self.is_eager = None
            self._profit.forget_known()

    def _take_monitor(self) -> Break | None:
        """Begin to monitor, until the lock is released; return what is in the way."""
        try:
            event_source().check_free()
        except StopRecordingError as stop:
            return Break(stop.refusal, stop.detail, "")
        if not self._lock.acquire(blocking=False):
            return Break(CATALOGUE["monitor-busy"], "", "")
        return None

    def _record(
        self,
        cache: RecordCache,
        signature: Signature,
        program: Program,
        failures: list[Any],
        noted: Recompile | None,
    ) -> Outcome:
        """Run a program, observed, and keep what that has given."""
        known, wanted = self._segments, cache.lifting.wanted
        sizes = self._known_sizes(cache, wanted, failures)
        # Numbers alone need no symbols.
        if wanted - {NEW_NUMBERS} and not sizes.may_wait and sizes.environment is None:
            # Most programs lift nothing. Within the run it could be observed.
            from magweld.frontend.lifting.environment import import_what_symbols_need

            import_what_symbols_need()
        # A value that differs from one recorded before is a branch, no condition.
        branched = any(
            record.guards[failure.number].category is Category.PREDICATE
            for record, failure in failures
        )
        start = time.perf_counter()
        try:
            outcome = capture(
                program,
                known.sources,
                known.places,
                wanted,
                self._annotations,
                branched,
                known.assumes,
                sizes,
                cache.lifting.changing,
            )
        except BaseException:
            # Of the program: a call like this one may always raise.
            with self._log.lock:
                cache.note_recording(None)
            self._pace.note(time.perf_counter() - start, None, cache.in_vain)
            raise
        seconds = time.perf_counter() - start
        record = self._keep(cache, signature, outcome, wanted)
        if record is not None:
            self._pace.note(seconds, record, cache.in_vain)
            record.begins = program.begins
            self._log.recorded(record, seconds, noted)
            took = outcome.capture is not None and outcome.capture.dynamic
            if took and cache.ahead is not None and not cache.ahead.has_failed:
                cache.ahead = None
        if outcome.outline is not None:
            cache.ahead = SizesAhead(wanted, outcome.outline)
        return outcome

    def _known_sizes(
        self, cache: RecordCache, wanted: frozenset[str], failures: list[Any]
    ) -> KnownSizes:
        """Return what there is of the sizes of a run that lifts some numbers.

        To work sizes out takes much longer than the rest of a monitored run, so this is
        done behind the calls like compilation. The first call may take long, and a
        program that is split has its values during the run alone.
        """
        ahead = cache.ahead
        if ahead is not None and ahead.wanted == wanted:
            return KnownSizes(ahead.environment)
        is_whole = all(record.ends is None for record, _ in failures)
        behind = self._backend.tiers.in_background and not cache.is_new
        return KnownSizes(may_wait=behind and bool(wanted) and is_whole)

    def _keep(
        self,
        cache: RecordCache,
        signature: Signature,
        found: Outcome,
        wanted: frozenset[str],
    ) -> Record | None:
        """Keep what a run has given that was to lift some numbers; return a record."""
        if found.refusal is not None:
            self._log.add(found.refusal)
        if found.capture is None:
            if found.refusal is None or found.refusal.id in PASSING:
                return None
            if found.refusal.id == "frame-access":
                # Those of a program that was split are not its own.
                self._segments.worthless = True
                with self._log.lock:
                    self._cache.drop()
                return None
            if wanted:
                # Without lifting, more programs can be captured.
                cache.lifting.retreat(wanted)
            elif not found.learned:
                cache.refuse(signature, found.refusal)
            return None
        record = self._maker.make(found.capture)
        if found.ends is not None:
            record.ends = self._segments.intern(found.ends)
        if record.ends is not None and self._segments.tally(record.operators):
            self._log.add(Break(CATALOGUE["many-breaks"], "", record.ends.where))
            with self._log.lock:
                self._cache.drop()
            return None
        with self._log.lock:
            cache.add(record)
            cache.lifting.note_captured(wanted, found.capture.pinned)
            if cache is self._cache:
                self._profit.add(cache.records)
        self._log.count("graphs")
        return record
