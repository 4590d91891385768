"""Work that goes on a little at a time: where it runs, pauses, ends and is given up."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from magweld import paced as paced_module
from magweld.paced import Paced, PacingError, checkpoint


def steps(count: int, seen: list[Any]) -> Callable[[], str]:
    """Return work of some steps, each of which notes its thread."""

    def work() -> str:
        for _ in range(count):
            seen.append(threading.current_thread())
            checkpoint()
        return "done"

    return work


def test_work_pauses_at_checkpoints() -> None:
    seen: list[Any] = []
    paced = Paced(steps(4, seen))
    for done in range(1, 5):
        assert not paced.go_on(0.0)
        assert len(seen) == done
        assert paced.outcome is None
    assert paced.go_on(0.0)
    assert paced.go_on(0.0)
    assert paced.outcome == ("done",)
    assert len(set(seen)) == 1
    assert threading.current_thread() not in seen


def test_enough_time_is_the_whole_work() -> None:
    paced = Paced(steps(100, []))
    assert paced.go_on(float("inf"))
    assert paced.outcome == ("done",)


def test_it_pauses_by_the_clock() -> None:
    times = iter(range(1000))
    seen: list[Any] = []
    paced = Paced(steps(20, seen), clock=lambda: float(next(times)))
    paced.go_on(5.0)
    assert len(seen) == 5


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1)])
def test_what_it_raises_is_its_outcome(error: BaseException) -> None:
    def work() -> None:
        checkpoint()
        raise error

    paced = Paced(work)
    assert not paced.go_on(0.0)
    assert paced.go_on(0.0)
    outcome = paced.outcome
    assert isinstance(outcome, Exception)
    assert outcome is error or "SystemExit(1)" in str(outcome)


def test_checkpoints_of_other_work_do_nothing() -> None:
    checkpoint()
    paced = Paced(steps(2, []))
    paced.go_on(0.0)
    checkpoint()


def test_never_beside_its_caller() -> None:
    running: list[bool] = []

    def work() -> None:
        for _ in range(50):
            running.append(True)
            time.sleep(0)
            running.pop()
            checkpoint()

    paced = Paced(work)
    while not paced.go_on(0.0):
        assert not running


def test_one_caller_at_a_time() -> None:
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        inside.set()
        assert leave.wait(60)
        checkpoint()

    paced = Paced(work)
    other = threading.Thread(target=paced.go_on, args=(0.0,))
    other.start()
    assert inside.wait(60)
    assert not paced.go_on(0.0)
    leave.set()
    other.join()
    assert paced.go_on(0.0)


def test_other_surroundings_do_not_let_it_go_on() -> None:
    surroundings = ["float32"]
    seen: list[Any] = []
    paced = Paced(steps(3, seen), lambda: surroundings[0])
    paced.go_on(0.0)
    surroundings[0] = "float64"
    assert not paced.go_on(float("inf"))
    assert len(seen) == 1
    surroundings[0] = "float32"
    assert paced.go_on(float("inf"))


def test_what_needs_its_callers_surroundings_runs_in_the_call() -> None:
    local = threading.local()
    local.mode = "on"
    seen: list[Any] = []
    paced = Paced(steps(3, seen), lambda: getattr(local, "mode", "off"))
    assert paced.go_on(0.0)
    assert paced.outcome == ("done",)
    assert set(seen) == {threading.current_thread()}


def test_an_interrupted_caller_leaves_it_paused(monkeypatch: Any) -> None:
    seen: list[Any] = []
    paced = Paced(steps(3, seen))
    acquire = paced._running._paused.acquire
    interrupts = iter([True, False, False, False])

    def interrupted(timeout: float) -> bool:
        if next(interrupts):
            raise KeyboardInterrupt
        return acquire(timeout=timeout)

    monkeypatch.setattr(paced._running._paused, "acquire", interrupted)
    with pytest.raises(KeyboardInterrupt):
        paced.go_on(0.0)
    assert len(seen) == 1
    assert paced.outcome is None
    assert not paced.go_on(0.0)
    assert len(seen) == 2


def test_a_caller_does_not_wait_for_ever(monkeypatch: Any) -> None:
    monkeypatch.setattr(paced_module, "_LONGEST_WAIT", 0.01)
    held, ended = threading.Event(), threading.Event()

    def work() -> None:
        assert held.wait(60)
        try:
            checkpoint()
        finally:
            ended.set()

    paced = Paced(work)
    assert paced.go_on(0.0)
    assert isinstance(paced.outcome, PacingError)
    held.set()
    assert ended.wait(60)
    assert isinstance(paced.outcome, PacingError)


def test_a_caller_waits_for_work_that_gets_little_time(monkeypatch: Any) -> None:
    monkeypatch.setattr(paced_module, "_LONGEST_WAIT", 0.01)
    held = threading.Event()
    seconds = itertools.count(0.0, 2e-5)

    def work() -> None:
        assert held.wait(60)
        checkpoint()

    def processor_seconds() -> float:
        now = next(seconds)
        if now > 6e-5:
            held.set()
        return now

    paced = Paced(work)
    monkeypatch.setattr(paced._running, "_processor_seconds", processor_seconds)
    assert not paced.go_on(0.0)
    assert paced.outcome is None
    assert paced.go_on(float("inf"))
    assert paced.outcome == (None,)


def test_work_that_takes_too_long_itself_is_given_up(monkeypatch: Any) -> None:
    monkeypatch.setattr(paced_module, "_LONGEST_WAIT", 0.01)
    held = threading.Event()
    paced = Paced(lambda: held.wait(60))
    seconds = itertools.count(0.0, 0.004)
    monkeypatch.setattr(paced._running, "_processor_seconds", lambda: next(seconds))
    assert paced.go_on(0.0)
    assert isinstance(paced.outcome, PacingError)
    held.set()


def test_time_on_a_processor_is_that_of_the_work() -> None:
    paced = Paced(lambda: [sum(range(10**6)), checkpoint()])
    running = paced._running
    assert running._processor_seconds() == 0.0
    assert not paced.go_on(0.0)
    assert running._processor_seconds() > 0.0


def test_nothing_stays_of_work_that_nobody_wants() -> None:
    ended = threading.Event()

    def work() -> None:
        try:
            checkpoint()
        finally:
            ended.set()

    paced = Paced(work)
    paced.go_on(0.0)
    assert not ended.is_set()
    del paced
    gc.collect()
    assert ended.wait(60)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_without_a_thread_it_runs_in_the_call(no_threads: None) -> None:
    paced = Paced(steps(3, []))
    assert paced.go_on(0.0)
    assert paced.outcome == ("done",)


SCRIPT = """
import os, sys
from magweld.paced import Paced, checkpoint
def work():
    for _ in range(3):
        checkpoint()
paced = Paced(work)
assert not paced.go_on(0.0)
"""


def test_the_end_of_the_process_leaves_it_paused() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_it_does_not_go_on_in_a_forked_process() -> None:
    fork = """
child = os.fork()
if child == 0:
    assert paced.go_on(0.0)
    assert "before this process was forked" in str(paced.outcome)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert paced.go_on(1.0)
assert paced.outcome == (None,)
"""
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT + fork]
    subprocess.run(command, check=True, timeout=60)
