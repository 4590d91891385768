"""Owns the joining of tuning: workers, the cache of plans, what is shown."""

from __future__ import annotations

from importlib.metadata import version

from magweld import env
from magweld.artifact import Program
from magweld.runtime.fingerprint import compiler_identity
from magweld.runtime.measuring import TASK
from magweld.runtime.plans import identity_digest, plan_cache
from magweld.runtime.worker_pool import ExecutorRunner, TaskRunner, WorkerPool
from magweld.targets.host import host_device
from magweld.tuning.contest import Contest
from magweld.tuning.options import TuneOptions
from magweld.tuning.tuner import Tuner
from magweld.tuning.watching import watching

# Tasks that are given to a caller's executor at a time; it has its own queue.
_EXECUTOR_TASKS = 32


def tuned(
    runner: TaskRunner,
    options: TuneOptions,
    text: str,
    settings: str,
    threads: int,
    gpu: str = "",
) -> Program:
    """Compile a module with plans that are measured.

    Args:
        runner: Where the compiler runs, if the caller brings no executor.
        options: What the caller asks for.
        text: The module in the torch dialect.
        settings: Text of the `CompileOptions`, behind a target that is not the host.
        threads: That the program will run with.
        gpu: Name of the GPU that it will run on, "" for none.

    Raises:
        WorkerError: The compiler refused it or did not come back.
    """
    cache = plan_cache(env.CACHE_DIR.get()) if env.CACHE.get() else None
    digest = identity_digest(plan_identity(threads, gpu))
    with watching(options.progress) as watcher:
        if options.executor is not None:
            shared, most = ExecutorRunner(options.executor), _EXECUTOR_TASKS
            contest = Contest(shared, threads)
            return Tuner(
                shared, contest, digest, options, cache, most, most, watcher
            ).compile(text, settings)
        meter = WorkerPool(1, preload=(TASK.partition(":")[0],))
        most = env.WORKERS.get() or host_device().units
        try:
            contest = Contest(meter, threads)
            return Tuner(
                runner, contest, digest, options, cache, most, 1, watcher
            ).compile(text, settings)
        finally:
            meter.close()


def plan_identity(threads: int, gpu: str = "") -> str:
    """Return what plans depend on beside their units, one fact a line."""
    library = f"torch {version('torch')}"
    found = f"{compiler_identity()}\n{library}\nthreads {threads}"
    return f"{found}\ngpu {gpu}" if gpu else found
