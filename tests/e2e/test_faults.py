"""Faults around a compilation: the results stay right and the reason is told."""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from magweld import api
from magweld.frontend import Traced, trace
from magweld.runtime import service
from magweld.runtime.service import ServiceStatistics
from magweld.runtime.worker_pool import WorkerPool

TASK_ATTRIBUTE = "_COMPILE_TASK"
PID_FILE = "MAGWELD_TEST_PID_FILE"
# Two processes at a time, then a third. They are forked before anything has run: what
# they share is what they have imported.
# What all of them import is imported before they part.
PROCESSES = """
import json, os, torch, torch._dynamo
from magweld import api, frontend
from magweld.importer import importer

def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    model.requires_grad_(False)
    fast = frontend.trace(model)
    fast(torch.randn(3, 8))
    x = torch.randn(3, 8)
    torch.testing.assert_close(fast(x), model(x))
    assert fast.stats()["hits"] == 1, fast.explain()
    done = api.compile_service().statistics
    return {"disk_hits": done.disk_hits, "misses": done.misses}

def start():
    child = os.fork()
    if not child:
        code = 1
        try:
            print(json.dumps(run()), flush=True)
            code = 0
        finally:
            os._exit(code)
    return child

def wait(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

for child in [start(), start()]:
    wait(child)
wait(start())
"""


@pytest.fixture
def cache(
    shared_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An empty cache directory and a new compile service for one test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MAGWELD_CACHE_DIR", str(folder))
    api.compile_service.cache_clear()
    yield folder
    api.compile_service.cache_clear()


@pytest.fixture
def use_task(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], None]]:
    """Let workers run a task of `fault_tasks` in place of the compiler."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    workers = WorkerPool(1)  # they find modules where this process does now
    monkeypatch.setattr(service, "WorkerPool", lambda *args, **options: workers)

    def use(name: str) -> None:
        monkeypatch.setattr(api, TASK_ATTRIBUTE, f"fault_tasks:{name}")

    yield use
    workers.close()


def model() -> nn.Module:
    layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
    return layers.requires_grad_(False)


def run_model() -> Traced:
    """Trace a model anew and compare two calls with eager."""
    eager = model()
    traced = trace(eager)
    for _ in range(2):
        x = torch.randn(3, 8)
        torch.testing.assert_close(traced(x), eager(x))
    assert traced.stats()["hits"] == 1
    return traced


def is_compiled(traced: Traced) -> bool:
    return isinstance(traced.records[0].compiled, api.CompiledGraph)


def statistics() -> ServiceStatistics:
    return api.compile_service().statistics


def restart() -> None:
    """Forget what is in memory, as a new process would."""
    api.compile_service.cache_clear()


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ("abort", "killed by SIGABRT.*worker-died"),
        ("refuse", "neither here nor there.*task-failed"),
        ("answer_garbage", "not a program.*worker-protocol"),
    ],
)
def test_a_compiler_that_fails(
    task: str, reason: str, use_task: Callable[[str], None]
) -> None:
    use_task(task)
    with pytest.warns(UserWarning, match=f"(?s)backend-failed.*{reason}"):
        traced = run_model()
    assert not is_compiled(traced)
    assert [item.id for item in traced.records[0].breaks] == ["backend-failed"]


def test_a_worker_that_is_killed(
    use_task: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_task("hang_once")
    pid_file = tmp_path / "pid"
    monkeypatch.setenv(PID_FILE, str(pid_file))

    def kill() -> None:
        while not pid_file.exists():
            time.sleep(0.01)
        os.kill(int(pid_file.read_text(encoding="ascii")), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.warns(UserWarning, match=r"(?s)killed by SIGKILL.*worker-died"):
        traced = run_model()
    killer.join()
    assert not is_compiled(traced)
    assert is_compiled(run_model())  # by the next worker


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: bytes(range(256)) * 20,
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    ],
    ids=["truncated", "empty", "garbage", "one bit"],
)
def test_a_damaged_cache_file(
    damage: Callable[[bytes], bytes], cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_model()
    (path,) = cache.rglob("*.program")
    path.write_bytes(damage(path.read_bytes()))
    restart()
    assert is_compiled(run_model())
    assert (statistics().disk_hits, statistics().misses) == (0, 1)
    assert "is not usable, recompiling" in caplog.text
    restart()
    run_model()
    assert (statistics().disk_hits, statistics().misses) == (1, 0)


def make_file(folder: Path) -> None:
    folder.write_bytes(b"")


def make_open_to_all(folder: Path) -> None:
    run_model()
    (inner,) = folder.iterdir()
    inner.chmod(0o777)
    restart()


@pytest.mark.parametrize("spoil", [make_file, make_open_to_all])
def test_a_cache_that_cannot_be_used(
    spoil: Callable[[Path], None], cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(cache)
    assert is_compiled(run_model())
    assert statistics().disk_hits == 0
    assert "the compile cache, going on without it" in caplog.text


def test_a_cache_directory_that_cannot_be_made(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Nobody can make a directory there, not even the super user.
    monkeypatch.setenv("MAGWELD_CACHE_DIR", "/proc/magweld")
    assert is_compiled(run_model())
    assert "cannot write the compile cache" in caplog.text


def test_no_space_for_the_cache(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        assert is_compiled(run_model())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot write the compile cache" in caplog.text
    assert not list(cache.rglob("*.*"))


def test_no_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGWELD_CACHE", "0")
    assert is_compiled(run_model())
    assert not cache.exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MAGWELD_WORKERS", "0"),
        ("MAGWELD_CACHE", "perhaps"),
        ("MAGWELD_CACHE_MAX_BYTES", "-1"),
    ],
)
def test_an_environment_variable_that_means_nothing(
    name: str, text: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.warns(UserWarning, match=f"{name}: expected .*, got '{text}'"):
        assert not is_compiled(run_model())


def test_processes_share_the_cache(cache: Path) -> None:
    command = [sys.executable, "-c", PROCESSES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    *_, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last == {"disk_hits": 1, "misses": 0}, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert len(list(cache.rglob("*.program"))) == 1
    assert not [p for p in cache.rglob("*") if p.suffix == ".tmp"]


@pytest.fixture(autouse=True)
def warnings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
