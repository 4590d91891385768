"""Owns who runs compile tasks: a pool of worker processes or any executor."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from traceback import format_exception
from typing import Protocol

from magweld.runtime.errors import (
    TaskFailedError,
    WorkerDiedError,
    WorkerStartError,
    WorkerTimeoutError,
)
from magweld.runtime.worker import run_task
from magweld.runtime.worker_process import WorkerProcess

_logger = logging.getLogger(__name__)


class TaskRunner(Protocol):
    """Runs a task somewhere that may die without harm."""

    def run(self, target: str, payload: bytes, timeout_seconds: float) -> bytes:
        """Run "module:function" on `payload`, return its bytes.

        Raises:
            WorkerError: It raised, or did not come back.
        """
        ...

    def prestart(self) -> None:
        """Begin to prepare for a task that is to come; returns at once."""
        ...


class WorkerPool:
    """Worker processes that are started when needed and used again.

    For any number of threads; after a fork the child has an empty pool of its own.
    The workers end with this process.

    Args:
        size: Most processes at a time; further requests wait.
        preload: Modules that a worker imports before its first task.
        nice: By how much workers give way to other processes, see nice(2).
    """

    def __init__(
        self, size: int = 1, preload: Sequence[str] = (), nice: int = 0
    ) -> None:
        self._size = size
        self._preload = tuple(preload)
        self._nice = nice
        self._reset()
        reference = weakref.ref(self)

        def reset_in_child() -> None:
            pool = reference()
            if pool is not None:
                pool._reset()

        os.register_at_fork(after_in_child=reset_in_child)

    def _reset(self) -> None:
        self._slots = threading.BoundedSemaphore(self._size)
        self._idle: deque[WorkerProcess] = deque()
        self._finalizer = weakref.finalize(self, _kill_all, self._idle)

    def run(self, target: str, payload: bytes, timeout_seconds: float) -> bytes:
        """Run "module:function" on `payload` in a worker, return its bytes.

        Raises:
            TaskFailedError: The task raised.
            WorkerError: The worker did not start, died, hung or sent garbage. The
                next request gets another one.
        """
        with self._slots:
            worker = self._take()
            try:
                result = worker.request(target, payload, timeout_seconds)
            except TaskFailedError:
                self._idle.append(worker)
                raise
            except BaseException:
                worker.kill()
                raise
            self._idle.append(worker)
            return result

    def prestart(self) -> None:
        """Start a worker without waiting for it, unless one is idle."""
        if self._idle or not self._slots.acquire(blocking=False):
            return
        try:
            self._idle.append(WorkerProcess(self._preload, self._nice))
        except WorkerStartError as error:
            # The request that needs a worker tries again and reports it.
            _logger.info("no worker was started ahead: %s", error.reason)
        finally:
            self._slots.release()

    def close(self) -> None:
        """End the idle workers; the pool can be used again."""
        _kill_all(self._idle)

    def _take(self) -> WorkerProcess:
        while self._idle:
            try:
                worker = self._idle.pop()
            except IndexError:
                break
            if worker.is_usable:
                return worker
            worker.kill()
        return WorkerProcess(self._preload, self._nice)


def _kill_all(workers: deque[WorkerProcess]) -> None:
    while workers:
        workers.pop().kill()


class ExecutorRunner:
    """Runs tasks on an executor of the caller, e.g. one of a cluster."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def run(self, target: str, payload: bytes, timeout_seconds: float) -> bytes:
        """Run "module:function" on `payload` through the executor.

        Raises:
            TaskFailedError: The task raised.
            WorkerError: The executor is broken or shut down, or time is over.
        """
        try:
            future = self._executor.submit(run_task, target, payload)
        except RuntimeError as error:
            raise WorkerStartError(f"the executor takes no task: {error}") from error
        try:
            return future.result(timeout_seconds)
        except (BrokenExecutor, CancelledError) as error:
            raise WorkerDiedError(f"the executor gave up: {error}") from error
        except Exception as error:
            if isinstance(error, TimeoutError) and not future.done():
                future.cancel()
                reason = f"no answer within {timeout_seconds:g} s"
                raise WorkerTimeoutError(reason) from error
            raise _task_failure(error) from error

    def prestart(self) -> None:
        """Do nothing: an executor starts its workers as it likes."""


def _task_failure(error: Exception) -> TaskFailedError:
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return TaskFailedError(name, str(error), "".join(format_exception(error)))
