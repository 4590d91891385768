"""Owns compilation as a service: text in, program out, each key compiled once."""

from __future__ import annotations

import operator
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import astuple, dataclass
from functools import partial
from typing import Final

from magweld import env
from magweld.artifact import Program
from magweld.logs import topic
from magweld.runtime.cache import DiskCache
from magweld.runtime.container import (
    ContainerError,
    decode_program,
    encode_request,
)
from magweld.runtime.errors import WorkerProtocolError
from magweld.runtime.fingerprint import compiler_identity, program_key
from magweld.runtime.worker_pool import TaskRunner, WorkerPool
from magweld.targets.host import host_device

_logger: Final = topic("compiles")

COMPILE_SECONDS = 600.0
MakeProgram = Callable[[], Program]
# Tells whether a program that is kept is taken.
Suffices = Callable[[Program], bool]
_PROGRAMS_IN_MEMORY = 64


def _always(program: Program) -> bool:
    return True


@dataclass(frozen=True)
class ServiceStatistics:
    """What a service did so far.

    Attributes:
        memory_hits: Requests answered with a program that was in memory, or that
            another thread was just compiling.
        disk_hits: Requests answered from the disk cache.
        misses: Requests for which the compiler ran.
        failures: Those of the misses that ended in an exception.
        compile_seconds: Time spent in the compiler, summed over misses.
        disk_seconds: Time spent reading and writing the disk cache.
    """

    memory_hits: int = 0
    disk_hits: int = 0
    misses: int = 0
    failures: int = 0
    compile_seconds: float = 0.0
    disk_seconds: float = 0.0

    def __add__(self, other: ServiceStatistics) -> ServiceStatistics:
        sums = map(operator.add, astuple(self), astuple(other))
        return ServiceStatistics(*sums)


class CompileService:
    """Compiles module text through memory cache, disk cache and a task runner.

    For any number of threads. The task gets the payload of
    `container.encode_request` and returns `container.encode_program`.

    Args:
        task: The compiler, "module:function".
        runner: Where the task runs.
        cache: The disk cache; None for none.
        timeout_seconds: Time limit of one compilation.
        identity: The compiler and the host, as part of every key.
    """

    def __init__(
        self,
        task: str,
        runner: TaskRunner,
        cache: DiskCache | None = None,
        timeout_seconds: float = COMPILE_SECONDS,
        identity: Callable[[], str] = compiler_identity,
    ) -> None:
        self._task = task
        self._runner = runner
        self._cache = cache
        self._timeout_seconds = timeout_seconds
        self._identity = identity
        self._programs: OrderedDict[str, Program] = OrderedDict()
        self._statistics = ServiceStatistics()
        self._reset()
        reference = weakref.ref(self)

        def reset_in_child() -> None:
            service = reference()
            if service is not None:
                service._reset()

        os.register_at_fork(after_in_child=reset_in_child)

    def _reset(self) -> None:
        # What other threads were compiling does not end in a forked process.
        self._lock = threading.Lock()
        self._pending: dict[str, Future[Program]] = {}

    @staticmethod
    def from_environment(task: str, nice: int = 0) -> CompileService:
        """Return a service with workers and cache as the environment says.

        Args:
            task: The compiler, "module:function".
            nice: By how much its workers give way to other processes, see nice(2).

        Raises:
            EnvironmentVariableError: An environment variable is ill-formed.
        """
        size = env.WORKERS.get() or host_device().units
        runner = WorkerPool(size, preload=(task.partition(":")[0],), nice=nice)
        cache = None
        if env.CACHE.get():
            cache = DiskCache(env.CACHE_DIR.get(), env.CACHE_MAX_BYTES.get())
        return CompileService(task, runner, cache)

    @property
    def runner(self) -> TaskRunner:
        """Where tasks run."""
        return self._runner

    @property
    def statistics(self) -> ServiceStatistics:
        """What happened so far."""
        return self._statistics

    def prepare(self) -> None:
        """Start what the next compilation needs, without waiting for it."""
        self._runner.prestart()

    def run(self, task: str, payload: bytes) -> bytes:
        """Run another task, "module:function", where the compiler runs; no cache.

        Raises:
            WorkerError: The task refused or did not come back.
        """
        return self._runner.run(task, payload, self._timeout_seconds)

    def compile(
        self,
        text: str,
        options: str = "",
        make: MakeProgram | None = None,
        facts: str = "",
        suffices: Suffices = _always,
    ) -> Program:
        """Return the program of a module.

        Args:
            text: The module, in the form that the task takes.
            options: Canonical text of the options that the task takes.
            make: What compiles it instead of the task; the options tell them apart.
            facts: What else the program depends on, such as what options name.
            suffices: Whether a program that is kept is taken. One that is not is made
                again and replaced.

        Raises:
            WorkerError: The compiler refused it or did not come back.
        """
        make = make or partial(self._run_task, text, options)
        settings = f"{options}\n{facts}" if facts else options
        key = program_key(self._identity(), settings, text)
        while True:
            with self._lock:
                kept = self._programs.get(key)
                if kept is not None and suffices(kept):
                    self._programs.move_to_end(key)
                    self._statistics += ServiceStatistics(memory_hits=1)
                    return kept
                future = self._pending.get(key)
                is_leader = future is None
                if future is None:
                    future = self._pending[key] = Future()
            if is_leader:
                return self._lead(key, make, suffices, future)
            try:
                program = future.result()
            except CancelledError:
                continue  # the thread that compiled was interrupted: take over
            if not suffices(program):
                continue  # that thread wanted less
            with self._lock:
                self._statistics += ServiceStatistics(memory_hits=1)
            return program

    def _lead(
        self,
        key: str,
        make: MakeProgram,
        suffices: Suffices,
        future: Future[Program],
    ) -> Program:
        try:
            program = self._find(key, make, suffices)
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            if isinstance(error, Exception):
                future.set_exception(error)
            else:
                future.cancel()
            raise
        with self._lock:
            self._programs[key] = program
            while len(self._programs) > _PROGRAMS_IN_MEMORY:
                self._programs.popitem(last=False)
            del self._pending[key]
        future.set_result(program)
        return program

    def _find(self, key: str, make: MakeProgram, suffices: Suffices) -> Program:
        start = time.perf_counter()
        program = self._cache.get(key) if self._cache else None
        if program is not None and not suffices(program):
            program = None
        seconds = time.perf_counter() - start
        with self._lock:
            self._statistics += ServiceStatistics(
                disk_hits=int(program is not None), disk_seconds=seconds
            )
        if program is not None:
            _logger.info("program %.12s: from the disk cache, %.3f s", key, seconds)
            return program
        program = self._run_compiler(key, make)
        if self._cache:
            start = time.perf_counter()
            self._cache.put(key, program)
            seconds = time.perf_counter() - start
            with self._lock:
                self._statistics += ServiceStatistics(disk_seconds=seconds)
        return program

    def _run_compiler(self, key: str, make: MakeProgram) -> Program:
        start = time.perf_counter()
        failures = 1
        try:
            made = make()
            failures = 0
            return made
        finally:
            seconds = time.perf_counter() - start
            with self._lock:
                self._statistics += ServiceStatistics(
                    misses=1, failures=failures, compile_seconds=seconds
                )
            outcome = "failed" if failures else "compiled"
            _logger.info("program %.12s: %s in %.3f s", key, outcome, seconds)

    def _run_task(self, text: str, options: str) -> Program:
        payload = encode_request(options, text)
        return decode_answer(self.run(self._task, payload))


def decode_answer(data: bytes) -> Program:
    """Return the program that a compile task answered with.

    Raises:
        WorkerProtocolError: It is none.
    """
    try:
        return decode_program(data)
    except ContainerError as error:
        reason = f"the compiler's answer is not a program: {error}"
        raise WorkerProtocolError(reason) from error
