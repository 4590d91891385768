"""Owns for how long a worker has the processor only where nothing else wants it.

Operators of torch share out work among threads and wait for each other: a call with
many of them waits as often for a thread whose core compiles, a hundred times as long as
it takes, however little weight the compiler has.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

# Seconds after which a worker that has not answered competes as its weight has it: a
# program that leaves no core idle is to get its code as well.
YIELDING_SECONDS: Final = 2.0
# A program that takes less of one core than this, for so many seconds, is one that
# waits: for the worker, maybe, which then is not to yield to strangers.
_WAITING: Final = 0.2
_ASKED_SECONDS: Final = 0.1


@functools.cache
def may_return() -> bool:
    """Whether threads of this process that have yielded may compete again.

    Without the right to raise their own weight they may not. It is tried out in a
    thread of its own.
    """
    if not hasattr(os, "SCHED_IDLE"):
        return False
    found: list[bool] = []

    def attempt() -> None:
        found.append(_set_policy(0, os.SCHED_IDLE) and _set_policy(0, os.SCHED_OTHER))

    thread = threading.Thread(target=attempt, name="magweld-yielding")
    try:
        thread.start()
    except RuntimeError:
        return False  # no thread can be had
    thread.join()
    return found == [True]


class Yielding:
    """Has a child process yield to all others for a while.

    Args:
        pid: Its process id; it must not have been waited for.
        clock: Seconds.
        spent: Seconds that this process has had a processor.
    """

    def __init__(
        self,
        pid: int,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.process_time,
    ) -> None:
        self._pid = pid
        self._clock = clock
        self._spent = spent
        self._until: float | None = None
        self._asked = (0.0, 0.0)

    def begin(self) -> None:
        """Let it yield from now on, its threads and children as well."""
        if may_return():
            self._asked = (self._clock(), self._spent())
            self._until = self._asked[0] + YIELDING_SECONDS
            self._set(os.SCHED_IDLE)

    def go_on(self) -> None:
        """Let it compete again if it has yielded for long enough, or for nobody."""
        if self._until is None:
            return
        now, spent = self._clock(), self._spent()
        then, before = self._asked
        is_over = now >= self._until
        if not is_over and now - then < _ASKED_SECONDS:
            return
        self._asked = (now, spent)
        if is_over or spent - before < _WAITING * (now - then):
            self._until = None
            self._set(os.SCHED_OTHER)

    def _set(self, policy: int) -> None:
        for thread in list(_threads_of(self._pid)):
            _set_policy(thread, policy)


def _set_policy(thread: int, policy: int) -> bool:
    try:
        os.sched_setscheduler(thread, policy, os.sched_param(0))
    except OSError:
        return False  # it has ended, or may not
    return True


def _threads_of(pid: int) -> Iterator[int]:
    """Yield the threads of a process and of its children, as far as they are known."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        tasks = []
    for task in tasks:
        yield int(task.name)
        try:
            children = (task / "children").read_text().split()
        except OSError:
            children = []
        for child in children:
            yield from _threads_of(int(child))
