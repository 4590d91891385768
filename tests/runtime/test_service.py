from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from magweld.artifact import Program
from magweld.runtime.cache import DiskCache
from magweld.runtime.errors import (
    TaskFailedError,
    WorkerDiedError,
    WorkerProtocolError,
)
from magweld.runtime.program import LoadedProgram
from magweld.runtime.service import CompileService
from magweld.runtime.worker_pool import ExecutorRunner, WorkerPool

LIMIT = 1 << 30


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File with a line for each run of the compiler."""
    path = tmp_path / "compilations"
    path.touch()
    monkeypatch.setenv("MAGWELD_TEST_COMPILE_LOG", str(path))
    return path


def count(log: Path) -> int:
    return len(log.read_text().splitlines())


def text_of(program: Program) -> str:
    """Run the program that `worker_tasks.compile_constant` makes."""
    (result,) = LoadedProgram(program, lambda node, tensors: ())([])
    return bytes(result.tolist()).decode()


def test_memory_then_disk_then_compiler(
    pool: WorkerPool, tasks: str, log: Path, tmp_path: Path
) -> None:
    task = f"{tasks}:compile_constant"
    cache = DiskCache(tmp_path / "cache", LIMIT)
    service = CompileService(task, pool, cache)
    first = service.compile("module text", "options")
    assert text_of(first) == "module text"
    assert first.report == {"options": "options"}
    assert service.compile("module text", "options") is first
    other = CompileService(task, pool, cache)
    assert other.compile("module text", "options") == first
    assert count(log) == 1
    mine, others = service.statistics, other.statistics
    assert (mine.memory_hits, mine.disk_hits, mine.misses) == (1, 0, 1)
    assert (others.memory_hits, others.disk_hits, others.misses) == (0, 1, 0)
    assert mine.compile_seconds > 0.0
    assert others.disk_seconds > 0.0


def test_text_and_options_make_different_programs(
    pool: WorkerPool, tasks: str, log: Path
) -> None:
    service = CompileService(f"{tasks}:compile_constant", pool)
    programs = [
        service.compile(text, options) for text in ("a", "b") for options in ("", "x")
    ]
    assert [text_of(p) for p in programs] == ["a", "a", "b", "b"]
    assert count(log) == 4


def test_concurrent_requests_for_one_key_compile_once(
    pool: WorkerPool, tasks: str, log: Path
) -> None:
    service = CompileService(f"{tasks}:compile_constant", pool)
    with ThreadPoolExecutor(8) as executor:
        programs = list(executor.map(service.compile, ["slow text"] * 8))
    assert count(log) == 1
    assert all(program is programs[0] for program in programs)
    assert service.statistics.memory_hits == 7


def ask(service: CompileService, number: int) -> int:
    """Return the number of a program that is to have at least so high a one."""

    def make() -> Program:
        return Program((), (), (), arena_bytes=0, report={"number": number})

    found = service.compile(
        "text", make=make, suffices=lambda program: program.report["number"] >= number
    )
    return int(found.report["number"])


def test_what_does_not_suffice_is_made_again(pool: WorkerPool, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", LIMIT)
    first, second = (CompileService("", pool, cache) for _ in range(2))
    assert [ask(first, number) for number in (1, 1, 2, 1)] == [1, 1, 2, 2]
    assert [ask(second, number) for number in (2, 1, 3)] == [2, 2, 3]
    mine, others = first.statistics, second.statistics
    assert (mine.memory_hits, mine.disk_hits, mine.misses) == (2, 0, 2)
    assert (others.memory_hits, others.disk_hits, others.misses) == (1, 1, 1)
    assert ask(CompileService("", pool, cache), 1) == 3


def test_who_waits_for_what_does_not_suffice_makes_it(pool: WorkerPool) -> None:
    service = CompileService("", pool)
    started, go_on = threading.Event(), threading.Event()

    def make() -> Program:
        started.set()
        go_on.wait(60)
        return Program((), (), (), arena_bytes=0, report={"number": 1})

    with ThreadPoolExecutor(2) as executor:
        leader = executor.submit(service.compile, "text", make=make)
        assert started.wait(60)
        follower = executor.submit(ask, service, 2)
        go_on.set()
        assert leader.result(60).report == {"number": 1}
        assert follower.result(60) == 2


def test_failures_reach_every_waiter_and_are_not_kept(
    pool: WorkerPool, tasks: str, log: Path, tmp_path: Path
) -> None:
    cache = DiskCache(tmp_path / "cache", LIMIT)
    service = CompileService(f"{tasks}:compile_constant", pool, cache)
    for _ in range(2):
        with pytest.raises(TaskFailedError, match="cannot compile refuse this"):
            service.compile("refuse this")
    assert count(log) == 2
    with pytest.raises(WorkerDiedError, match="exited with status 9"):
        service.compile("crash please")
    with pytest.raises(WorkerProtocolError, match="not a program"):
        service.compile("nonsense")
    assert text_of(service.compile("good")) == "good"
    assert service.statistics.failures == 4
    assert service.statistics.misses == 5


def test_damaged_cache_file_is_compiled_again(
    pool: WorkerPool, tasks: str, log: Path, tmp_path: Path
) -> None:
    task = f"{tasks}:compile_constant"
    directory = tmp_path / "cache"
    CompileService(task, pool, DiskCache(directory, LIMIT)).compile("text")
    (path,) = directory.rglob("*.program")
    intact = path.read_bytes()
    for damaged in (intact[:-10], intact[:-1] + bytes([intact[-1] ^ 1]), b""):
        path.write_bytes(damaged)
        service = CompileService(task, pool, DiskCache(directory, LIMIT))
        assert text_of(service.compile("text")) == "text"
        assert service.statistics.misses == 1
        assert path.read_bytes() == intact
    assert count(log) == 4


def test_other_tasks_run_in_the_same_place(
    pool: WorkerPool, tasks: str, log: Path
) -> None:
    service = CompileService(f"{tasks}:compile_constant", pool)
    service.compile("text")
    (compiler,) = log.read_text().split()
    assert json.loads(service.run(f"{tasks}:describe", b""))["pid"] == int(compiler)
    assert service.statistics.misses == 1


def test_works_without_a_usable_cache(pool: WorkerPool, tasks: str, log: Path) -> None:
    cache = DiskCache(Path("/dev/null/cache"), LIMIT)
    service = CompileService(f"{tasks}:compile_constant", pool, cache)
    assert text_of(service.compile("text")) == "text"
    assert text_of(service.compile("text")) == "text"
    assert count(log) == 1


class _InterruptedOnce(ExecutorRunner):
    """Is interrupted in its first task, while another thread waits for the result."""

    def __init__(self) -> None:
        super().__init__(ThreadPoolExecutor(1))
        self.started = threading.Event()
        self.go_on = threading.Event()
        self.runs = 0

    def run(self, target: str, payload: bytes, timeout_seconds: float) -> bytes:
        self.runs += 1
        if self.runs == 1:
            self.started.set()
            self.go_on.wait(60)
            raise KeyboardInterrupt
        return super().run(target, payload, timeout_seconds)


def test_interrupted_compilation_is_taken_over(tasks: str) -> None:
    runner = _InterruptedOnce()
    service = CompileService(f"{tasks}:compile_constant", runner)
    interrupted: list[bool] = []

    def lead() -> None:
        try:
            service.compile("text")
        except KeyboardInterrupt:
            interrupted.append(True)

    leader = threading.Thread(target=lead)
    leader.start()
    assert runner.started.wait(60)
    with ThreadPoolExecutor(1) as executor:
        follower = executor.submit(service.compile, "text")
        runner.go_on.set()
        assert text_of(follower.result(60)) == "text"
    leader.join()
    assert interrupted == [True]
    assert runner.runs == 2


def test_environment_chooses_the_cache(
    tasks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAGWELD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MAGWELD_WORKERS", "1")
    task = f"{tasks}:compile_constant"
    assert text_of(CompileService.from_environment(task).compile("text")) == "text"
    assert len(list((tmp_path / "cache").rglob("*.program"))) == 1
    monkeypatch.setenv("MAGWELD_CACHE", "0")
    service = CompileService.from_environment(task)
    service.prepare()
    assert text_of(service.compile("other")) == "other"
    assert len(list((tmp_path / "cache").rglob("*.program"))) == 1


PROCESS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from magweld.runtime.cache import DiskCache
from magweld.runtime.service import CompileService
from magweld.runtime.worker_pool import WorkerPool

service = CompileService(
    "worker_tasks:compile_constant",
    WorkerPool(),
    DiskCache(Path(sys.argv[2]), 1 << 30),
)
service.prepare()
print("ready", flush=True)
sys.stdin.readline()
print(service.compile("slow text").constants[0].decode())
"""


def test_two_processes_compile_one_key_at_once(tmp_path: Path, log: Path) -> None:
    directory = tmp_path / "cache"
    here = str(Path(__file__).parent)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, here, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120) for process in processes]
    assert outputs == [("slow text\n", "")] * 2
    assert 1 <= count(log) <= 2
    files = os.listdir(next(directory.iterdir()))
    assert len(files) == 1
