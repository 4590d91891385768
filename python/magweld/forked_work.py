"""Owns the running of functions side by side in copies of this process."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Never

from magweld.runtime.worker import end_with_parent

Work = Callable[[], bytes]


def run_forked(works: Sequence[Work]) -> list[bytes]:
    """Run functions at the same time: the first here, each other in a forked child.

    A child has all that this process has imported and made, so it costs neither the
    start of a process nor a request as text. It works on a copy: what it changes is
    gone with it. Only for processes in which no other thread may hold a lock, such as
    workers.

    A function whose child raises or dies is run here, so that the caller gets what it
    would get without children.

    Returns:
        What each function returns, in order.

    Raises:
        Exception: What a function raises.
    """
    first, *others = works
    children: list[_Child] = []
    try:
        children += map(_fork, others)
        results = [first()]
        for work, child in zip(others, children, strict=True):
            answer = child.answer()
            results.append(work() if answer is None else answer)
        return results
    finally:
        for child in children:
            child.end()


@dataclass
class _Child:
    """A forked process that runs one function.

    Attributes:
        pid: Its process id.
        answers: File descriptor of what it writes; -1 once it has ended.
    """

    pid: int
    answers: int

    def answer(self) -> bytes | None:
        """Wait for its answer; None if it raised or died."""
        with os.fdopen(self.answers, "rb") as stream:
            self.answers = -1
            written = stream.read()
        _, status = os.waitpid(self.pid, 0)
        return written if status == 0 else None

    def end(self) -> None:
        """End it if nobody has waited for it."""
        if self.answers < 0:
            return
        os.close(self.answers)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _fork(work: Work) -> _Child:
    answers, written = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _be_child(work, written, parent)
    os.close(written)
    return _Child(pid, answers)


def _be_child(work: Work, written: int, parent: int) -> Never:
    status = 1
    try:
        threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
        with os.fdopen(written, "wb") as stream:
            stream.write(work())
        status = 0
    finally:
        # Nothing of the parent's is to be ended or flushed here.
        os._exit(status)
