"""Owns work that goes on a little at a time, while a caller waits for it.

The work has a thread of its own, which runs only while a caller waits and pauses at
checkpoints. So it never runs beside the program: what is global to the process is for
the work what it is for the callers.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

# A caller that has waited so long for a checkpoint goes on, and the work is given up:
# seconds of work between two checkpoints, or without any work, when it is blocked. A
# busy machine makes both longer, so the processor's time is what counts.
_LONGEST_WAIT: Final = 10.0
# A blocked thread that asks now and then whether it may go on works less than this.
_BLOCKED_SHARE: Final = 0.001

T = TypeVar("T")

_PAUSE: ContextVar[Callable[[], None] | None] = ContextVar("pause", default=None)


def checkpoint() -> None:
    """Let paced work pause here; nothing happens in other work."""
    pause = _PAUSE.get()
    if pause is not None:
        pause()


class PacingError(Exception):
    """Paced work cannot go on: it did not pause, or began in another process."""


class ForkedError(PacingError):
    """The work began in a process that this one was forked of."""


class Paced(Generic[T]):
    """Work that callers let go on, each for a while.

    Args:
        work: What is to be done; it calls `checkpoint` often.
        surroundings: What the work takes from the thread that it runs in. Work whose
            own thread has others than its first caller is done within that call;
            callers with others than the first do not let it go on.
        clock: Seconds.
    """

    def __init__(
        self,
        work: Callable[[], T],
        surroundings: Callable[[], Any] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._running = _Running(work, surroundings, clock)
        self._process = os.getpid()
        self._lock = threading.Lock()
        # Nobody will let it go on any more. At the end of the process it stays paused.
        weakref.finalize(self, self._running.give_up).atexit = False

    @property
    def outcome(self) -> tuple[T] | Exception | None:
        """What the work has returned or raised; None before."""
        return self._running.outcome

    def go_on(self, seconds: float) -> bool:
        """Let the work go on for a while; return whether it has ended.

        Nothing happens while another thread lets it go on.

        Args:
            seconds: After these the work pauses at its next checkpoint.
        """
        running = self._running
        if running.outcome is None and os.getpid() != self._process:
            running.outcome = ForkedError("begun before this process was forked")
        if running.outcome is not None:
            return True
        if not self._lock.acquire(blocking=False):
            return False
        try:
            running.go_on(seconds)
        finally:
            self._lock.release()
        return running.outcome is not None


class _Running(Generic[T]):
    """The work and its thread, which holds nothing of what lets it go on."""

    def __init__(
        self,
        work: Callable[[], T],
        surroundings: Callable[[], Any],
        clock: Callable[[], float],
    ) -> None:
        self.outcome: tuple[T] | Exception | None = None
        self._work = work
        self._surroundings = surroundings
        self._expected = surroundings()
        self._clock = clock
        self._resumed = threading.Semaphore(0)
        self._paused = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        # The clock of the thread's own time on a processor.
        self._timer: int | None = None
        self._fits_thread = True
        self._until = 0.0
        self._is_given_up = False

    def go_on(self, seconds: float) -> None:
        """Let the work go on, if the caller has the surroundings that it began in."""
        if self.outcome is not None or self._surroundings() != self._expected:
            return
        self._until = self._clock() + seconds
        if self._thread is not None:
            self._resumed.release()
        elif not self._start():
            self._do()
            return
        self._wait()
        if not self._fits_thread:
            self._do()

    def give_up(self) -> None:
        """Have the work end at the checkpoint where it is."""
        self._is_given_up = True
        self._resumed.release()

    def _start(self) -> bool:
        """Start the thread; return False if none can be had."""
        thread = threading.Thread(target=self._run, name="magweld-paced", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def _run(self) -> None:
        self._timer = time.pthread_getcpuclockid(threading.get_ident())
        _PAUSE.set(self._pause)
        if self._surroundings() == self._expected:
            self._do()
        else:
            self._fits_thread = False
        self._paused.release()

    def _wait(self) -> None:
        """Wait until the work has paused or ended."""
        paused = False
        try:
            paused = self._wait_while_it_works()
        except BaseException:
            # The caller is interrupted, but the work must not go on beside it.
            self._until = float("-inf")
            paused = self._paused.acquire(timeout=_LONGEST_WAIT)
            raise
        finally:
            if not paused:
                self._is_given_up = True
                self.outcome = PacingError("the work did not pause")

    def _wait_while_it_works(self) -> bool:
        """Wait until the work has paused; return False if it takes too long."""
        start = before = self._processor_seconds()
        while not self._paused.acquire(timeout=_LONGEST_WAIT):
            now = self._processor_seconds()
            blocked = now - before < _BLOCKED_SHARE * _LONGEST_WAIT
            if blocked or now - start >= _LONGEST_WAIT:
                return False
            before = now
        return True

    def _processor_seconds(self) -> float:
        """Return the processor's time that the work has taken so far."""
        try:
            return 0.0 if self._timer is None else time.clock_gettime(self._timer)
        except OSError:
            return 0.0  # the thread has ended, and with it the work

    def _do(self) -> None:
        try:
            outcome: tuple[T] | Exception = (self._work(),)
        except Exception as error:
            outcome = error
        except BaseException as error:
            outcome = RuntimeError(f"the work ended with {error!r}")
        if not self._is_given_up:
            self.outcome = outcome

    def _pause(self) -> None:
        if self._clock() >= self._until and not self._is_given_up:
            self._paused.release()
            self._resumed.acquire()
        if self._is_given_up:
            raise _GivenUpError


class _GivenUpError(BaseException):
    """Ends the thread of work that was given up."""
