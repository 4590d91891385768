from __future__ import annotations

from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from magweld.runtime.errors import (
    TaskFailedError,
    WorkerDiedError,
    WorkerError,
    WorkerTimeoutError,
)
from magweld.runtime.worker_pool import ExecutorRunner

PATIENCE = 60.0


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_any_executor_can_run_tasks(tasks: str, kind: str) -> None:
    executor = (
        ThreadPoolExecutor(1)
        if kind == "threads"
        else ProcessPoolExecutor(1, mp_context=get_context("forkserver"))
    )
    with executor:
        runner = ExecutorRunner(executor)
        assert runner.run(f"{tasks}:echo", b"bytes", PATIENCE) == b"bytes"
        with pytest.raises(TaskFailedError, match="too odd"):
            runner.run(f"{tasks}:raise_error", b"too odd", PATIENCE)
        if kind == "processes":
            with pytest.raises(WorkerDiedError):
                runner.run(f"{tasks}:exit_at_once", b"", PATIENCE)
    with pytest.raises(WorkerError):
        runner.run(f"{tasks}:echo", b"", PATIENCE)


def test_threads_of_an_executor_run_one_task_at_a_time(tasks: str) -> None:
    """MLIR's bindings crash where one thread loads dialects and another reads."""
    with ThreadPoolExecutor(3) as executor, ThreadPoolExecutor(3) as callers:
        runner = ExecutorRunner(executor)
        counts = callers.map(
            lambda _: runner.run(f"{tasks}:count_running", b"", PATIENCE), range(3)
        )
        assert {*counts} == {b"\x01"}


def test_executor_that_does_not_answer() -> None:
    class Never(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **keywords: Any) -> Future[Any]:
            return Future()

    with pytest.raises(WorkerTimeoutError, match=r"within 0\.01 s"):
        ExecutorRunner(Never()).run("any:task", b"", 0.01)
