"""Workers behind the calls run where nothing else wants the processor, for a while."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from magweld.runtime import yielding
from magweld.runtime.worker_pool import WorkerPool
from magweld.runtime.yielding import Yielding, may_return

PATIENCE = 60.0
NEVER = 1e9

pytestmark = pytest.mark.skipif(not may_return(), reason="threads may not return")


@pytest.fixture
def background() -> Iterator[WorkerPool]:
    pool = WorkerPool(nice=5)
    yield pool
    pool.close()


def test_a_worker_behind_the_calls_yields(
    background: WorkerPool, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yielding, "YIELDING_SECONDS", NEVER)
    monkeypatch.setattr(yielding, "_WAITING", 0.0)
    for _ in range(2):
        told = background.run(f"{tasks}:tell_scheduling", b"0", PATIENCE)
        assert int(told) == os.SCHED_IDLE


def test_it_competes_after_a_while(
    background: WorkerPool, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yielding, "YIELDING_SECONDS", 0.0)
    wait = str(PATIENCE / 2).encode()
    told = background.run(f"{tasks}:tell_scheduling", wait, PATIENCE)
    assert int(told) == os.SCHED_OTHER


def test_a_worker_that_a_call_waits_for_does_not(pool: WorkerPool, tasks: str) -> None:
    told = pool.run(f"{tasks}:tell_scheduling", b"0", PATIENCE)
    assert int(told) == os.SCHED_OTHER


def test_nothing_yields_that_may_not_return(
    background: WorkerPool, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yielding, "may_return", lambda: False)
    told = background.run(f"{tasks}:tell_scheduling", b"0", PATIENCE)
    assert int(told) == os.SCHED_OTHER


# A process with a thread and a forked child, which end when their input does.
_FAMILY = """
import os, sys, threading
threading.Thread(target=sys.stdin.read).start()
child = os.fork()
if child:
    print(child, flush=True)
else:
    sys.stdin.read()
"""


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_threads_and_children_go_with_a_process(share: float) -> None:
    """A large module is shared out among forks of a worker.

    A program that has no processor itself, as it waits, is not yielded to.
    """
    now = [0.0]
    with subprocess.Popen(
        [sys.executable, "-c", _FAMILY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        child = int(process.stdout.readline())
        threads = [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]
        one = Yielding(process.pid, lambda: now[0], lambda: share * now[0])
        found = []
        for act in (one.begin, one.go_on, one.go_on):
            act()
            members = (*threads, child)
            found.append({os.sched_getscheduler(member) for member in members})
            now[0] += 0.75 * yielding.YIELDING_SECONDS
        process.stdin.close()
    assert len(threads) == 2
    yields, competes = {os.SCHED_IDLE}, {os.SCHED_OTHER}
    assert found == [yields, yields if share else competes, competes]
