"""Forked processes for the coverage table: one for each case, some at a time."""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Job = tuple[Row, Callable[[], Row]]


@dataclass(frozen=True)
class Limits:
    """What a case may use.

    Attributes:
        seconds: Time for one case.
        memory: GiB of memory beside that of the parent.
        quiet: Whether warnings are kept back.
    """

    seconds: float
    memory: int
    quiet: bool = True


@dataclass
class _Child:
    row: Row
    process: Any
    start: float


def _work(work: Callable[[], Row], limits: Limits, sender: Connection) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    bound = used + (limits.memory << 30)
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    if limits.quiet:
        warnings.simplefilter("ignore")
    sender.send(work())


def run_all(jobs: Iterable[Job], parallel: int, limits: Limits) -> Iterator[Row]:
    """Run jobs in child processes, forked from here, and yield their rows.

    Args:
        jobs: The row of a case as it is known now, and what gives the whole one.
        parallel: Number of processes at a time.
        limits: What each may use; one that needs more, crashes or hangs is an error.
    """
    context = multiprocessing.get_context("fork")
    waiting = iter(jobs)
    running: dict[Connection, _Child] = {}
    exhausted = False
    while running or not exhausted:
        while len(running) < parallel and not exhausted:
            job = next(waiting, None)
            if job is None:
                exhausted = True
                continue
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(job[1], limits, sender))
            process.start()
            sender.close()
            running[receiver] = _Child(job[0], process, time.perf_counter())
        for receiver in wait(list(running), timeout=1.0):
            assert isinstance(receiver, Connection), "only pipes are waited for"
            yield _finish(receiver, running.pop(receiver))
        for receiver, child in list(running.items()):
            if time.perf_counter() - child.start > limits.seconds:
                del running[receiver]
                yield _finish(None, child, f"no result in {limits.seconds:g} s")


def _finish(receiver: Connection | None, child: _Child, why: str = "") -> Row:
    row = {**child.row, "result": "error", "why": why}
    try:
        if receiver is not None:
            row = receiver.recv()
    except EOFError:
        child.process.join()
        row["why"] = f"the process ended with {child.process.exitcode}"
    child.process.kill()
    child.process.join()
    row["seconds"] = round(time.perf_counter() - child.start, 2)
    return row
