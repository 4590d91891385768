"""Owns graphs in two tiers: torch runs them until compiled code is there and faster."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from magweld.comparison import Turns
from magweld.logs import topic
from magweld.paced import ForkedError, Paced
from magweld.progress import progress
from magweld.stand_by import stand_by_of

_COMPILES: Final = topic("compiles")
_FALLBACKS: Final = topic("fallbacks")
# Seconds that a call may prepare for compiling the graphs of a program, and that pass
# from one such call to the next.
_SLICE: Final = 0.02
_PAUSE: Final = 0.01
# Threads that wait for compile workers, for each traced callable.
_THREADS: Final = 2
# Ratio of times that tells of forms for other values as well.
_CLEAR: Final = 1.25
# Compiled code may be slower by this much: the ratio of least times has such noise.
_TOLERATED: Final = 1.03
# Ratio from which a verdict is worth keeping for other processes. Those of a machine
# that was busy are not kept: other processes decide anew.
_LASTING: Final = 1.1

Call = Callable[..., Any]
Clock = Callable[[], float]


class Compiled(Protocol):
    """Compiled code of a graph."""

    @property
    def held_bytes(self) -> int:
        """Bytes of code, constants and arena."""

    def __call__(self, *inputs: Any) -> Any:
        """Run the graph."""

    def mlir(self, stage: str) -> str:
        """Return the module at a stage."""

    def report(self) -> dict[str, Any]:
        """Return what was decided."""


@dataclass(frozen=True)
class Verdict:
    """Which tier of a graph is faster.

    Attributes:
        compiled_seconds: Least time of a call of the compiled code.
        torch_seconds: Least time of a call through torch.
    """

    compiled_seconds: float
    torch_seconds: float

    @property
    def is_for_torch(self) -> bool:
        """Whether torch is to run the graph."""
        return self.compiled_seconds > self.torch_seconds * _TOLERATED

    @property
    def ratio(self) -> float:
        """By how much one tier is faster than the other, at least 1."""
        times = (self.compiled_seconds, self.torch_seconds)
        return max(times) / max(min(times), 1e-9)

    @property
    def is_clear(self) -> bool:
        """Whether it tells of forms for other values as well."""
        return self.ratio >= _CLEAR

    def __str__(self) -> str:
        ours, theirs = self.compiled_seconds * 1e3, self.torch_seconds * 1e3
        return f"compiled {ours:.3g} ms, through torch {theirs:.3g} ms"


@dataclass(frozen=True)
class Race:
    """How the tiers of a graph are compared.

    Attributes:
        known: The verdict of an earlier process.
        remember: Keeps a verdict for later processes.
        clock: Seconds.
        turns: Whose turn it is, and the times.
        is_shared: Whether graphs like this one take turns with it.
    """

    known: Verdict | None = None
    remember: Callable[[Verdict], None] | None = None
    clock: Clock = time.perf_counter
    turns: Turns = field(default_factory=Turns)
    is_shared: bool = False


@dataclass(frozen=True)
class Work:
    """What makes the compiled code of a graph.

    Attributes:
        compile: Makes it.
        race: How it is compared with torch; None takes it.
    """

    compile: Callable[[], Compiled]
    race: Race | None = None


@dataclass
class _Next:
    """When tiers are compared once more, whose times were those of a busy machine.

    Attributes:
        code: The compiled code.
        race: The comparison.
        left: Calls until then.
    """

    code: Compiled
    race: Race
    left: int


# What has to run in a thread of the program before a graph can be compiled behind it.
Prepare = Callable[[], Work]


class Job:
    """Work that is done behind the calls."""

    def __init__(self, work: Callable[[], Compiled]) -> None:
        self._work = work
        self._process = os.getpid()
        self._ended = threading.Event()
        # Set once. It is read without a lock, which a fork could leave locked.
        self.outcome: Compiled | Exception | None = None

    def run(self) -> None:
        """Do the work and keep its outcome."""
        try:
            self.outcome = self._work()
        except Exception as error:
            self.outcome = error
        except BaseException as error:
            self.outcome = RuntimeError(f"compiling ended with {error!r}")
        self._ended.set()

    @property
    def is_over(self) -> bool:
        """Whether there is an outcome, which may be that there will be none."""
        if self.outcome is None and os.getpid() != self._process:
            # Threads do not go on in a forked process.
            self.outcome = ForkedError("begun before this process was forked")
        return self.outcome is not None

    def wait(self, seconds: float | None) -> bool:
        """Wait for the outcome; return whether it is there."""
        if not self.is_over:
            self._ended.wait(seconds)
        return self.outcome is not None


class Pace:
    """When calls of a program prepare for compiling its graphs."""

    def __init__(self) -> None:
        self._last: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether a call may prepare: none has for a while, for whichever graph."""
        return self._last is None or time.perf_counter() - self._last > _PAUSE

    def note(self) -> None:
        """Take note that a call has just prepared."""
        self._last = time.perf_counter()


class TieredGraph:
    """A graph that torch runs until its compiled code is there and has won.

    The first calls after that run one or the other in turn and are timed; no call runs
    both. Without a race the compiled code is taken as soon as it is there. If the times
    were those of a busy machine, the tiers are compared once more later.

    Args:
        reference: Runs the graph through torch.
        name: For the log.
        pace: When calls prepare for compiling; one for the graphs of a program.

    Attributes:
        compiled: The compiled code; None before it is there, and if torch is faster.
        error: What compiling has raised, or the code where torch did not.
        verdict: Which tier is faster, once that is known.
        torch_calls: How many calls torch has answered.
        made: 1 once the compiled code has been made, 0 before.
        seconds_behind: Time that compiling took, if it was not within a call.
        on_failure: Gets such an error, in the thread of a caller.
        on_ready: Called when compiled code or the failure is there, likewise.
        on_taken: Gets the compiled code when it is to run all further calls, and this
            graph if it is not to do so any more.
    """

    def __init__(
        self, reference: Call, name: str = "a graph", pace: Pace | None = None
    ) -> None:
        self.reference = reference
        self._name = name
        self.compiled: Compiled | None = None
        self.error: Exception | None = None
        self.verdict: Verdict | None = None
        self.torch_calls = 0
        self.made = 0
        self.seconds_behind = 0.0
        self.on_failure: Callable[[Exception], None] | None = None
        self.on_ready: Callable[[], None] | None = None
        self.on_taken: Callable[[Call], None] | None = None
        self._race: Race | None = None
        self._under_way: Race | None = None
        self._next: _Next | None = None
        self._compared = 0
        self._presumed: Verdict | None = None
        self._work: Callable[[], Compiled] | None = None
        self._preparation: Paced[Work] | None = None
        self._pace = pace or Pace()
        self._enqueue: Callable[[Job], None] | None = None
        self._job: Job | None = None
        self._lock = threading.Lock()
        self._is_bound = False
        self._report: dict[str, Any] = {}
        self._run: Call = self._through_torch

    def __call__(self, *inputs: Any) -> Any:
        """Run the graph."""
        return self._run(*inputs)

    def __repr__(self) -> str:
        tier = "torch" if self.compiled is None else "compiled"
        return f"<tiered graph: {'pending' if self.is_pending else tier}>"

    @property
    def is_pending(self) -> bool:
        """Whether the compiled code is not there yet."""
        return self._job is not None or self._preparation is not None

    @property
    def is_decided(self) -> bool:
        """Whether it is known which tier runs further calls."""
        return not self.is_pending and self._under_way is None

    @property
    def is_doubtful(self) -> bool:
        """Whether the tiers are to be compared once more."""
        return self._next is not None or (
            self._under_way is not None and self.verdict is not None
        )

    @property
    def runs_through_torch(self) -> bool:
        """Whether torch runs the next call: the code is not there, or slower."""
        if self._job is not None and self._job.is_over:
            self.settle()
        return self.compiled is None

    @property
    def taken(self) -> Compiled | None:
        """The compiled code if it runs all further calls."""
        return self.compiled if self._run is self.compiled else None

    def take_call(self) -> Compiled | None:
        """Return the code if it runs the next call, and count that as run; else None.

        Who asks runs it: it is that which a call of this graph would run.
        """
        compiled = self.compiled
        if self._run is not compiled and compiled is not None:
            if not self.is_decided:
                return None
            # It may be that it is timed from the call behind this one on.
            self._count_down()
        return compiled

    @property
    def runs_compiled(self) -> bool:
        """Whether the code runs further calls, until it is timed again if it is."""
        return self.compiled is not None and self.is_decided

    @property
    def is_clearly_compiled(self) -> bool:
        """Whether the code runs further calls, by a clear verdict if by any."""
        is_clear = self.verdict is None or self.verdict.is_clear
        return self.runs_compiled and is_clear

    @property
    def held_bytes(self) -> int:
        """Bytes of the compiled code, as far as it is there."""
        return 0 if self._kept is None else self._kept.held_bytes

    @property
    def _kept(self) -> Compiled | None:
        return self.compiled if self._next is None else self._next.code

    def mlir(self, stage: str) -> str:
        """Return the module at a stage; waits for the compiled code.

        Raises:
            ValueError: There is no such stage, or no compiled code.
        """
        self.wait(None)
        if self.error is not None:
            raise ValueError(f"the graph runs through torch: {self.error}")
        if self._kept is not None:
            return self._kept.mlir(stage)
        if self._work is None:
            raise ValueError("the graph runs through torch: it is not compiled yet")
        return self._work().mlir(stage)

    def describe(self) -> str:
        """Return which tier runs the graph, and why."""
        if self.is_pending:
            return "being compiled; torch runs it meanwhile"
        if isinstance(self.error, ForkedError):
            return f"torch runs it: to compile it was {self.error}"
        if self.error is not None:
            failed = "its code has raised" if self.made else "it could not be compiled"
            return f"torch runs it: {failed}"
        if self._under_way is not None:
            return "compiled; being timed against torch"
        if self.verdict is None:
            return "compiled"
        faster = "torch" if self.verdict.is_for_torch else "the compiled code"
        doubt = "" if self._next is None else "; to be timed again"
        return f"{faster} runs it: {self.verdict}{doubt}"

    def report(self) -> dict[str, Any]:
        """Return what was decided; nothing as long as the code is not there."""
        return self._report if self._kept is None else self._kept.report()

    def note_torch_call(self) -> None:
        """Count a call that torch has answered, or is about to."""
        self.torch_calls += 1
        self._count_down()

    def compare_again(self) -> None:
        """Compare the tiers from the next call on, if that is still to be done."""
        # Another thread may be at it, or have been at it when the process was forked.
        if not self._lock.acquire(blocking=False):
            return
        try:
            waiting, self._next = self._next, None
            if waiting is not None:
                self.compiled = waiting.code
                self._race_with(waiting.code, waiting.race)
        finally:
            self._lock.release()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the compiled code or its failure; return whether it is there."""
        self.prepare(seconds)
        job = self._job
        if job is not None and job.wait(seconds):
            self.settle()
        return not self.is_pending

    def prepare(self, seconds: float | None) -> None:
        """Do what has to be done in a thread of the program, for so long at most."""
        self._prepare(float("inf") if seconds is None else seconds)

    def advance(self) -> bool:
        """Prepare a little more or take the code; return whether nothing is awaited."""
        if not self.is_pending:
            return True
        if self._pace.is_due:
            self._prepare(_SLICE)
        job = self._job
        if job is not None and job.is_over:
            self.settle()
        return not self.is_pending

    def settle(self) -> None:
        """Take what the job has made, if it is there; once."""
        # Another thread may be at it, or have been at it when the process was forked.
        if not self._lock.acquire(blocking=False):
            return
        try:
            job = self._job
            if job is None or job.outcome is None:
                return
            if isinstance(job.outcome, Exception):
                self._fail(job.outcome)
            else:
                self._begin(job.outcome)
            self._job = None
        finally:
            self._lock.release()
        self._tell()

    def presume(self, verdict: Verdict) -> None:
        """Take a verdict of a graph like this one for that of this graph."""
        self._presumed = verdict
        if self._race is not None and self._race.known is None:
            self._race = Race(known=verdict)
        # Another thread may be at it, or have been at it when the process was forked.
        if self._under_way is None or not self._lock.acquire(blocking=False):
            return
        try:
            # What is compared once more has a verdict of its own.
            if self._under_way is not None and self.verdict is None:
                self._under_way = None
                self._judge(verdict)
        finally:
            self._lock.release()

    def compile(self, prepare: Prepare) -> None:
        """Make the compiled code now, unless torch is known to be faster.

        Raises:
            Exception: What the preparation or the work raises.
        """
        work = self._take_work(prepare())
        if work is not None:
            self._begin(work())

    def compile_later(
        self, preparation: Paced[Work], enqueue: Callable[[Job], None]
    ) -> None:
        """Have the compiled code made behind the calls.

        The call that has made the graph has taken long enough, and a graph that no
        further call runs needs no code.

        Args:
            preparation: Goes on in calls that run the graph, a little in each.
            enqueue: Takes the job that it leads to.
        """
        self._enqueue = enqueue
        self._preparation = preparation
        self._run = self._until_ready

    def give_up(self) -> bool:
        """Leave the graph to torch if nobody has begun to make its code.

        Returns:
            Whether that is so.
        """
        # Another thread may be at it, or have been at it when the process was forked.
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._preparation is None:
                return False
            self._preparation = None
            self._run = self._through_torch
            return True
        finally:
            self._lock.release()

    def _prepare(self, seconds: float) -> None:
        """Let the preparation go on for a while, if there is one."""
        start, preparation = time.perf_counter(), self._preparation
        if preparation is None:
            return
        has_ended = preparation.go_on(seconds)
        self._pace.note()
        self.seconds_behind += time.perf_counter() - start
        # Another thread may be at it.
        if not has_ended or not self._lock.acquire(blocking=False):
            return
        try:
            if self._preparation is None:
                return
            if isinstance(preparation.outcome, tuple):
                self._take_job(preparation.outcome[0])
            else:
                assert preparation.outcome is not None, "it has ended"
                self._fail(preparation.outcome)
            self._preparation = None
        finally:
            self._lock.release()
        if not self.is_pending:
            self._tell()

    def _take_work(self, work: Work) -> Callable[[], Compiled] | None:
        """Take what makes the code; return it unless torch is known to be faster."""
        self._work, self._race = work.compile, work.race
        if self._presumed is not None:
            self.presume(self._presumed)
        known = None if self._race is None else self._race.known
        if known is not None and known.is_for_torch:
            self.verdict = known
            self._log_verdict()
            return None
        return work.compile

    def _take_job(self, work: Work) -> None:
        wanted = self._take_work(work)
        if wanted is None:
            self._run = self._through_torch
            return
        assert self._enqueue is not None, "it is compiled later"
        self._job = Job(functools.partial(self._timed, wanted))
        self._enqueue(self._job)

    def _timed(self, work: Callable[[], Compiled]) -> Compiled:
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds_behind += time.perf_counter() - start

    def _fail(self, error: Exception) -> None:
        self.error = error
        self._run = self._through_torch

    def _tell(self) -> None:
        """Tell of the code that is there, or of the failure."""
        ready, self.on_ready = self.on_ready, None
        if ready is not None:
            ready()
        if isinstance(self.error, ForkedError):
            _FALLBACKS.info("%s: %s", self._name, self.describe())
        elif self.error is not None:
            self._tell_of(self.error)

    def _tell_of(self, error: Exception) -> None:
        failed, self.on_failure = self.on_failure, None
        if failed is not None:
            failed(error)

    def _begin(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.made = 1
        stand_by = stand_by_of(compiled)
        if stand_by is not None:
            stand_by.tell(self._lose)
        race = self._race
        if race is None:
            self._take(compiled)
        elif race.known is not None:
            self._judge(race.known)
        else:
            self._race_with(compiled, race)

    def _race_with(self, compiled: Compiled, race: Race) -> None:
        self._under_way = race
        self._run = functools.partial(self._in_turn, race, compiled)

    def _through_torch(self, *inputs: Any) -> Any:
        self.note_torch_call()
        return self.reference(*inputs)

    def _until_next(self, run: Call, *inputs: Any) -> Any:
        self._count_down()
        return run(*inputs)

    def _count_down(self) -> None:
        waiting = self._next
        if waiting is not None:
            waiting.left -= 1
            if waiting.left <= 0:
                self.compare_again()

    def _until_ready(self, *inputs: Any) -> Any:
        if self.advance():
            return self._run(*inputs)
        return self._through_torch(*inputs)

    def _in_turn(self, race: Race, compiled: Compiled, *inputs: Any) -> Any:
        by_torch = race.turns.way
        run = self._through_torch if by_torch else compiled
        start = race.clock()
        result = run(*inputs)
        seconds = race.clock() - start
        # The first call binds the code to an arena. It is not counted, as none is that
        # begins a turn; among turns of several graphs it may be any.
        if by_torch or self._is_bound or not race.is_shared:
            race.turns.add(by_torch, seconds)
        self._is_bound |= not by_torch
        self._compare(race)
        return result

    def _compare(self, race: Race) -> None:
        least = race.turns.least
        if race.turns.ratio is None or least is None:
            return
        verdict = Verdict(*least)
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._under_way is not race:
                return
            self._under_way = None
            self._judge(verdict, self._next_after(race, verdict))
        finally:
            self._lock.release()
        lasts = verdict.ratio >= _LASTING and race.turns.is_calm
        if race.remember is not None and lasts:
            race.remember(verdict)

    def _next_after(self, race: Race, verdict: Verdict) -> _Next | None:
        """Return when the tiers are compared once more behind a comparison.

        Code that has lost narrowly gets a second one in any case: the first calls may
        have met cold caches, and nothing else would bring it back.
        """
        narrow = verdict.is_for_torch and not verdict.is_clear
        trusts = self._compared > 0 or not narrow
        left = race.turns.calls_until_next(self._compared, trusts=trusts)
        if left is None or self.compiled is None:
            return None
        self._compared += 1
        again = replace(race, turns=Turns(), is_shared=False)
        return _Next(self.compiled, again, left)

    def _judge(self, verdict: Verdict, waiting: _Next | None = None) -> None:
        compiled = self.compiled
        assert compiled is not None, "there is nothing to compare"
        self.verdict = verdict
        self._next = waiting
        if verdict.is_for_torch:
            self._report = compiled.report()
            self.compiled = None
            self._run = self._through_torch
        elif waiting is None:
            self._take(compiled)
        else:
            self._run = functools.partial(self._until_next, compiled)
        self._log_verdict()

    def _log_verdict(self) -> None:
        by_torch = self.verdict is not None and self.verdict.is_for_torch
        logger = _FALLBACKS if by_torch else _COMPILES
        logger.info("%s: %s", self._name, self.describe())

    def _take(self, compiled: Compiled) -> None:
        self._run = compiled
        if self.on_taken is not None:
            self.on_taken(compiled)

    def _lose(self, error: Exception) -> None:
        """Have torch run all further calls: the code raises where torch does not."""
        # Another thread may be at it, or have been at it when the process was forked.
        if self.compiled is None or not self._lock.acquire(blocking=False):
            return
        try:
            self.compiled = self._next = self._under_way = None
            self._fail(error)
        finally:
            self._lock.release()
        _FALLBACKS.info("%s: its code raised %r", self._name, error)
        if self.on_taken is not None:
            self.on_taken(self)
        self._tell_of(error)


def tier_of(compiled: object) -> TieredGraph | None:
    """Return what has two tiers in something that a backend returned, if anything."""
    found = getattr(compiled, "tiered", compiled)
    return found if isinstance(found, TieredGraph) else None


def common_verdict(forms: Iterable[object]) -> Verdict | None:
    """Return what forms of a graph for other values have shown, if they agree clearly.

    Args:
        forms: What a backend has returned for each set of values.
    """
    tiers = [tier for tier in map(tier_of, forms) if tier and not tier.is_doubtful]
    found = [tier.verdict for tier in tiers if tier.verdict is not None]
    clear = all(verdict.is_clear for verdict in found)
    agree = len({verdict.is_for_torch for verdict in found}) == 1
    return found[-1] if clear and agree else None


class Tiers:
    """How the graphs of one traced callable get from torch to compiled code.

    Args:
        in_background: Whether graphs are compiled behind the calls.
        races: Whether compiled code must be faster than torch to be used.
    """

    def __init__(self, in_background: bool, races: bool) -> None:
        self.in_background = in_background
        self.races = races
        self._pace = Pace()
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._queue: deque[Job] = deque()
        self._running = 0
        self._unsettled: list[TieredGraph] = []

    @property
    def pending(self) -> int:
        """How many graphs are being compiled."""
        return sum(graph.is_pending for graph in self._unsettled)

    def graph(
        self,
        reference: Call,
        prepare: Prepare,
        surroundings: Callable[[], Any] = lambda: None,
        name: str = "a graph",
    ) -> TieredGraph:
        """Return a graph whose compiled code is made.

        Args:
            reference: Runs the graph through torch.
            prepare: Returns what makes the code; it calls `magweld.paced.checkpoint`.
                Behind the calls it goes on in those that run the graph.
            surroundings: What it takes from the thread that it runs in.
            name: For the log and the line that tells of a long wait.

        Raises:
            Exception: What making the code raises, unless that is behind the calls.
        """
        graph = TieredGraph(reference, name, self._pace)
        if not self.in_background:
            with progress(f"compiling {name}"):
                graph.compile(prepare)
            return graph
        if os.getpid() != self._process:
            self._reset()  # threads do not go on in a forked process
        graph.compile_later(Paced(prepare, surroundings), self._enqueue)
        with self._lock:
            self._unsettled = [g for g in self._unsettled if g.is_pending]
            self._unsettled += [graph] if graph.is_pending else []
        return graph

    def _enqueue(self, job: Job) -> None:
        with self._lock:
            self._queue.append(job)
            starts = self._running < _THREADS
            self._running += starts
        if starts:
            self._start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the graphs that are being compiled; return whether all are there.

        Args:
            seconds: How long at most; None waits until all are there.
        """
        end = None if seconds is None else time.monotonic() + seconds
        with progress("waiting for compiled code"):
            graphs = list(self._unsettled)
            # What is prepared first is compiled beside the others.
            for act in (TieredGraph.prepare, TieredGraph.wait):
                for graph in graphs:
                    left = None if end is None else max(0.0, end - time.monotonic())
                    act(graph, left)
        return not self.pending

    def _start(self) -> None:
        # A daemon: the end of the process does not wait for a compilation.
        name = "magweld-compile"
        try:
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError:
            self._work()  # no thread can be had

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._running -= 1
                    return
                job = self._queue.popleft()
            job.run()


class ExitGate:
    """Keeps native code of background threads away from the end of the process.

    Libraries take their state down then; a thread that is inside of them would crash.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self._reset)
        # Never released: whoever comes later sleeps until the process is gone.
        atexit.register(lambda: self._lock.acquire(timeout=5.0))

    def _reset(self) -> None:
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def native_code(self) -> Iterator[None]:
        """Run native code that must not be running when the process ends."""
        with self._lock:
            yield


@functools.cache
def exit_gate() -> ExitGate:
    """Return the gate of this process."""
    return ExitGate()
