from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from magweld.runtime.errors import (
    TaskFailedError,
    WorkerDiedError,
    WorkerProtocolError,
    WorkerTimeoutError,
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


def test_one_worker_serves_many_requests(pool: WorkerPool, tasks: str) -> None:
    payload = os.urandom(5_000_000)
    assert pool.run(f"{tasks}:echo", payload, PATIENCE) == payload
    pids = {
        json.loads(pool.run(f"{tasks}:describe", b"", PATIENCE))["pid"]
        for _ in range(3)
    }
    assert len(pids) == 1
    assert pids != {os.getpid()}


def test_worker_does_not_import_torch(tasks: str) -> None:
    pool = WorkerPool(preload=("magweld.bindings", "magweld.runtime.container"))
    answer = json.loads(pool.run(f"{tasks}:describe", b"", PATIENCE))
    pool.close()
    assert answer["modules"] == ["torch_mlir"]


def test_cycles_are_looked_for_seldom(pool: WorkerPool, tasks: str) -> None:
    task = f"{tasks}:count_collections"
    few, many = (int(pool.run(task, count, 60.0)) for count in (b"20000", b"200000"))
    assert few == 0
    assert 0 < many < 10


def test_task_that_raises_leaves_the_worker_alive(pool: WorkerPool, tasks: str) -> None:
    before = pool.run(f"{tasks}:describe", b"", PATIENCE)
    with pytest.raises(TaskFailedError, match="too odd") as caught:
        pool.run(f"{tasks}:raise_error", b"too odd", PATIENCE)
    assert caught.value.error_type == "builtins.ArithmeticError"
    assert caught.value.error_message == "too odd"
    assert "in raise_error" in caught.value.remote_traceback
    assert pool.run(f"{tasks}:describe", b"", PATIENCE) == before


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("{}:no_such_task", "no_such_task"),
        ("no_such_module:task", "no_such_module"),
        ("{}", "module:function"),
        ("{}:return_text", "returned str, not bytes"),
        ("{}:exit_quietly", "SystemExit"),
    ],
)
def test_bad_tasks_are_failures(
    pool: WorkerPool, tasks: str, task: str, message: str
) -> None:
    with pytest.raises(TaskFailedError, match=message):
        pool.run(task.format(tasks), b"", PATIENCE)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("kill_itself", "killed by SIGKILL"),
        ("abort", "killed by SIGABRT"),
        ("segfault", "killed by SIGSEGV"),
        ("exit_at_once", "exited with status 7"),
        ("close_all_files", "exited with status"),
    ],
)
def test_death_is_reported_and_the_next_request_served(
    pool: WorkerPool, tasks: str, task: str, message: str
) -> None:
    pool.run(f"{tasks}:echo", b"", PATIENCE)
    with pytest.raises(WorkerDiedError, match=message):
        pool.run(f"{tasks}:{task}", b"", PATIENCE)
    assert pool.run(f"{tasks}:echo", b"again", PATIENCE) == b"again"


def test_death_shows_the_last_lines(pool: WorkerPool, tasks: str) -> None:
    with pytest.raises(WorkerDiedError) as caught:
        pool.run(f"{tasks}:kill_itself", b"", PATIENCE)
    assert caught.value.stderr_tail == ("about to be killed",)
    with pytest.raises(WorkerDiedError) as caught:
        pool.run(f"{tasks}:abort", b"", PATIENCE)
    assert any("in abort" in line for line in caught.value.stderr_tail)


def test_killed_in_the_middle_of_a_request(
    pool: WorkerPool, tasks: str, tmp_path: Path
) -> None:
    announcement = tmp_path / "pid"
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(
            pool.run, f"{tasks}:announce_and_wait", str(announcement).encode(), PATIENCE
        )
        assert wait_for(announcement.exists)
        os.kill(int(announcement.read_text()), signal.SIGKILL)
        error = future.exception(PATIENCE)
    assert isinstance(error, WorkerDiedError)
    assert pool.run(f"{tasks}:echo", b"again", PATIENCE) == b"again"


def test_killed_while_idle_is_not_noticed(pool: WorkerPool, tasks: str) -> None:
    pid = json.loads(pool.run(f"{tasks}:describe", b"", PATIENCE))["pid"]
    (worker,) = pool._idle
    assert worker.pid == pid
    os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: not worker.is_alive)
    assert pool.run(f"{tasks}:echo", b"again", PATIENCE) == b"again"


@pytest.mark.parametrize("task", ["hang", "hang_with_interpreter_lock"])
def test_hang_ends_at_the_time_limit(pool: WorkerPool, tasks: str, task: str) -> None:
    pool.run(f"{tasks}:echo", b"", PATIENCE)  # imports the module of the tasks
    with pytest.raises(WorkerTimeoutError, match="within 1 s") as caught:
        pool.run(f"{tasks}:{task}", b"", 1.0)
    # Says where it was.
    assert any(f"in {task}" in line for line in caught.value.stderr_tail)
    assert pool.run(f"{tasks}:echo", b"again", PATIENCE) == b"again"


def test_death_is_seen_although_a_grandchild_lives(
    pool: WorkerPool, tasks: str
) -> None:
    with pytest.raises(WorkerDiedError, match="exited with status 5"):
        pool.run(f"{tasks}:die_leaving_a_child", b"20", 15.0)


def test_printing_does_not_disturb(pool: WorkerPool, tasks: str) -> None:
    assert pool.run(f"{tasks}:print_much", b"through", PATIENCE) == b"through"
    pool.run(f"{tasks}:start_background_printing", b"", PATIENCE)
    assert pool.run(f"{tasks}:echo", b"through", PATIENCE) == b"through"


def test_garbage_on_the_socket_is_a_protocol_error(
    pool: WorkerPool, tasks: str
) -> None:
    with pytest.raises(WorkerProtocolError, match="GARBAGE"):
        pool.run(f"{tasks}:write_garbage_to_all_files", b"", PATIENCE)
    assert pool.run(f"{tasks}:echo", b"again", PATIENCE) == b"again"


def test_garbage_of_an_idle_worker_costs_no_request(
    pool: WorkerPool, tasks: str
) -> None:
    pool.run(f"{tasks}:echo", b"", PATIENCE)
    (worker,) = pool._idle
    pool.run(f"{tasks}:write_garbage_later", b"", PATIENCE)
    assert wait_for(lambda: not worker.is_usable)
    assert worker.is_alive
    assert pool.run(f"{tasks}:echo", b"again", PATIENCE) == b"again"


def test_requests_of_many_threads(pool: WorkerPool, tasks: str) -> None:
    with ThreadPoolExecutor(8) as executor:
        futures: list[Future[bytes]] = [
            executor.submit(pool.run, f"{tasks}:sleep_briefly", b"", PATIENCE)
            for _ in range(16)
        ]
        pids = {future.result(PATIENCE) for future in futures}
    assert 1 <= len(pids) <= 2  # the size of the pool


def test_interrupted_request_ends_its_worker(
    pool: WorkerPool, tasks: str, tmp_path: Path
) -> None:
    announcement = tmp_path / "pid"
    # A process that was started in the background may ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        wait_for(announcement.exists)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.run(f"{tasks}:announce_and_wait", str(announcement).encode(), PATIENCE)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert wait_for(lambda: not is_running(int(announcement.read_text())))
    assert pool.run(f"{tasks}:echo", b"again", PATIENCE) == b"again"
