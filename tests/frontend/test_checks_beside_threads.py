"""The differential mode beside other threads: what these write is not undone."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from magweld.frontend import trace
from magweld.frontend.differential.beside import running_beside

X = torch.ones(3)
STATE = {"scale": 2.0}


def program(x: Tensor) -> Tensor:
    return x * STATE["scale"]


@contextlib.contextmanager
def thread_at(work: Callable[[threading.Event, threading.Lock], object]) -> Iterator:
    """Have a thread that stays within `work` until the lock or the event is there."""
    event, lock = threading.Event(), threading.Lock()
    with lock:
        thread = threading.Thread(target=work, args=(event, lock), name="beside")
        thread.start()
        while not is_there(thread):
            pass
        yield
        event.set()
    thread.join()


def is_there(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    places = {runs.__code__, threading.Condition.wait.__code__}
    return frame is not None and frame.f_code in places


def runs(event: threading.Event, lock: threading.Lock) -> None:
    lock.acquire()
    lock.release()


def waits(event: threading.Event, lock: threading.Lock) -> None:
    event.wait()


def waits_for_a_while(event: threading.Event, lock: threading.Lock) -> None:
    while not event.wait(0.001):
        pass


def test_threads_that_run_and_threads_that_wait() -> None:
    assert running_beside() == ""
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(abs, [1, -2])) == [1, 2]
        assert running_beside() == ""
        # This thread waits for the pool's.
        assert pool.submit(running_beside).result() == ""
    with thread_at(runs):
        assert running_beside() == "beside"
    with thread_at(waits):
        assert running_beside() == ""
    with thread_at(waits_for_a_while):
        assert running_beside() == "beside"
    assert running_beside() == ""


def test_a_thread_that_has_just_been_started_runs() -> None:
    found: list[str] = []
    original = threading._start_new_thread  # type: ignore[attr-defined]

    def start(*args: object) -> object:
        found.append(running_beside())
        return original(*args)

    threading._start_new_thread = start  # type: ignore[attr-defined]
    try:
        thread = threading.Thread(target=abs, args=(1,), name="new")
        thread.start()
    finally:
        threading._start_new_thread = original  # type: ignore[attr-defined]
    thread.join()
    assert found == ["new"]


def test_nothing_is_compared_while_a_thread_runs() -> None:
    fast = trace(program, backend="eager", check=True)
    fast(X)
    with thread_at(runs):
        assert torch.equal(fast(X), X * 2)
    stats = fast.stats()
    assert (stats["hits"], stats["checked"], stats["skipped"]) == (1, 0, 1)
    assert "thread beside runs beside it" in str(fast.breaks[0])
    fast(X)
    assert fast.stats()["checked"] == 1
