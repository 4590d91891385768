"""Owns the processes of `gpu.py run`: each has some artifacts, and ends alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpu_outcomes import Outcome, Packed, outcome_of

WORKER = Path(__file__).with_name("gpu_worker.py")
SANITIZER = "compute-sanitizer"
READY = "ready"


def worker_command(folder: Path, packed: Sequence[Packed], *more: str) -> list[str]:
    """Return the command of a process for some artifacts of a pack."""
    files = [one.file for one in packed]
    return [sys.executable, str(WORKER), str(folder), "--files", *files, *more]


class Worker:
    """A process that checks artifacts, prepares peers and waits to measure.

    Args:
        command: Of the process.
        packed: Its artifacts.

    Attributes:
        packed: Its artifacts.
        outcomes: What it has said of them, in their order.
    """

    def __init__(self, command: list[str], packed: Sequence[Packed]) -> None:
        self.packed = packed
        self.outcomes: list[Outcome] = []
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"},
        )

    def prepare(self) -> bool:
        """Read what it says until it waits; False if it has ended before."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == READY:
                return True
            if line.startswith('{"packed"'):
                self.outcomes.append(outcome_of(line))
        return False

    def measure(self, seconds: float) -> list[Outcome]:
        """Let it measure; return the outcomes with times of what it gets done."""
        with ThreadPoolExecutor(1) as reader:
            lines = reader.submit(self._go)
            try:
                return lines.result(max(seconds, 1.0))
            except TimeoutError:
                self.end()
                return lines.result()

    def end(self) -> str:
        """End it; return how it went and the last that it said of errors."""
        self._process.kill()
        code = self._process.wait()
        self._errors.seek(0)
        tail = "".join(self._errors.readlines()[-3:]).strip()
        return f"its process ended ({code}): {tail[-300:]}"

    def _go(self) -> list[Outcome]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; what it has written can be read
        lines = self._process.stdout.readlines()
        return [outcome_of(line) for line in lines if line.startswith('{"packed"')]


def check_and_measure(
    workers: Sequence[Worker], prepared_by: float, end: float
) -> Iterator[tuple[Worker, list[Outcome], str]]:
    """Yield each process with its outcomes, and why some have no times.

    Args:
        workers: They check and prepare side by side, and measure one after the other.
        prepared_by: When to end who is not ready, in seconds of `time.monotonic`.
        end: The same for measuring.
    """
    with ThreadPoolExecutor(max(len(workers), 1)) as pool:
        ready = [pool.submit(worker.prepare) for worker in workers]
        while time.monotonic() < prepared_by and not all(one.done() for one in ready):
            time.sleep(0.1)
        late = {
            id(w): w.end() for w, r in zip(workers, ready, strict=True) if not r.done()
        }
        for worker, one in zip(workers, ready, strict=True):
            measured: list[Outcome] = []
            if one.result():
                measured = worker.measure(end - time.monotonic())
            said = late.get(id(worker), "") or worker.end()
            times = {outcome.packed.file: outcome for outcome in measured}
            found = [times.get(o.packed.file, o) for o in worker.outcomes]
            yield worker, found, said


def check_alone(command: list[str], packed: Packed, seconds: float) -> Outcome:
    """Check an artifact in a process of its own."""
    worker = Worker(command, [packed])
    late = ""
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(worker.prepare)
        try:
            reading.result(max(seconds, 1.0))
        except TimeoutError:
            late = f"not done in {seconds:.0f} s"
        ended = worker.end()
    problem = late or ended
    return next(iter(worker.outcomes), Outcome(packed, problems=[problem]))


def sanitized(
    folder: Path, packed: Sequence[Packed], tools: Sequence[str], seconds: float
) -> dict[str, Any]:
    """Check artifacts once more under tools of compute-sanitizer, side by side.

    Returns:
        By tool and file "ok" or how the process went; why nothing was run.
    """
    path = shutil.which(SANITIZER)
    if path is None:
        return {"reason": "not installed"}
    if seconds < 10:
        return {"reason": "no time left"}

    def check(tool: str, one: Packed) -> str:
        command = [path, "--tool", tool, "--error-exitcode", "9"]
        command += worker_command(folder, [one])
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not done in {seconds:.0f} s"
        if done.returncode == 0:
            return "ok"
        return f"exit {done.returncode}: {done.stdout[-300:]}"

    pairs = [(tool, one) for tool in tools for one in packed]
    with ThreadPoolExecutor(max(len(pairs), 1)) as pool:
        said = pool.map(lambda pair: check(*pair), pairs)
    return {
        f"{tool} {one.file}": state
        for (tool, one), state in zip(pairs, said, strict=True)
    }
