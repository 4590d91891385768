from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from magweld.runtime import worker_process
from magweld.runtime.errors import (
    WorkerStartError,
)
from magweld.runtime.worker_pool import WorkerPool

PATIENCE = 60.0


def wait_for(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def refuse_to_start(*arguments: Any, **keywords: Any) -> Any:
    raise PermissionError("fork is not allowed here")


def test_no_permission_to_fork(
    pool: WorkerPool, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse_to_start)
        pool.prestart()
        with pytest.raises(WorkerStartError, match="fork is not allowed here"):
            pool.run(f"{tasks}:echo", b"", PATIENCE)
    assert pool.run(f"{tasks}:echo", b"again", PATIENCE) == b"again"


def test_interpreter_that_is_none(
    pool: WorkerPool, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(WorkerStartError, match="/no/such/python"):
        pool.run(f"{tasks}:echo", b"", PATIENCE)


def test_interpreter_that_ends_at_once(
    pool: WorkerPool, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkerStartError, match="exited with status 1"):
        pool.run(f"{tasks}:echo", b"", PATIENCE)


def test_worker_that_never_gets_ready(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\necho I sleep >&2\nexec sleep 1000\n")
    sleeper.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(sleeper))
    monkeypatch.setattr(worker_process, "START_SECONDS", 3.0)
    with pytest.raises(WorkerStartError, match="not ready after 3 s") as caught:
        pool.run("any:task", b"", PATIENCE)
    assert caught.value.stderr_tail == ("I sleep",)


def test_temporary_directory_is_not_needed(
    pool: WorkerPool, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/proc/no-such-directory")
    assert pool.run(f"{tasks}:echo", b"works", PATIENCE) == b"works"


def test_current_folder_provides_no_modules(
    pool: WorkerPool, tasks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "socket", "magweld"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadowed')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert pool.run(f"{tasks}:echo", b"works", PATIENCE) == b"works"


def test_prestarted_worker_is_the_one_used(pool: WorkerPool, tasks: str) -> None:
    pool.prestart()
    pool.prestart()
    (worker,) = pool._idle
    answer = json.loads(pool.run(f"{tasks}:describe", b"", PATIENCE))
    assert answer["pid"] == worker.pid


def test_forked_child_gets_workers_of_its_own(pool: WorkerPool, tasks: str) -> None:
    mine = pool.run(f"{tasks}:describe", b"", PATIENCE)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, pool.run(f"{tasks}:describe", b"", PATIENCE))
            pool.close()
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answers:
        theirs = answers.read()
    os.waitpid(child, 0)
    assert json.loads(theirs)["pid"] != json.loads(mine)["pid"]
    assert pool.run(f"{tasks}:describe", b"", PATIENCE) == mine


SCRIPT = """
import os, sys
print("main runs", flush=True)
sys.path.insert(0, sys.argv[1])
from magweld.runtime.worker_pool import WorkerPool
pool = WorkerPool()
pid = __import__("json").loads(pool.run("worker_tasks:describe", b"", 60.0))["pid"]
print(pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("death", ["exit", "kill"])
def test_worker_ends_with_its_parent(tmp_path: Path, death: str) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(Path(__file__).parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    # A start method that imports the main module would run the script again.
    assert process.stdout.readline() == "main runs\n"
    worker = int(process.stdout.readline())
    assert is_running(worker)
    if death == "kill":
        process.kill()
    process.stdin.close()
    assert process.stdout.read() == ""
    process.stdout.close()
    process.wait(PATIENCE)
    assert wait_for(lambda: not is_running(worker))
