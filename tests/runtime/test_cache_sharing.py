from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from magweld.artifact import (
    Program,
)
from magweld.runtime.cache import DiskCache
from magweld.runtime.container import (
    encode_program,
)

KEY = "ab" * 32
LIMIT = 1 << 30


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", LIMIT)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def key_of(number: int) -> str:
    return f"{number:064x}"


def test_eviction_that_races_with_another_process(
    make_program: Callable[..., Program],
    cache: DiskCache,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> None:
    cache.put(KEY, make_program())
    gone = cache.path(KEY).with_name("gone.program")
    listed = [cache.path(KEY), gone]
    monkeypatch.setattr(Path, "iterdir", lambda self: iter(listed))
    cache.put(KEY, make_program())
    assert warnings(caplog) == []


def test_threads_on_one_key_see_whole_programs(
    make_program: Callable[..., Program], cache: DiskCache
) -> None:
    program = make_program(os.urandom(200_000))
    seen: list[Program | None] = []

    def work() -> None:
        for _ in range(20):
            cache.put(KEY, program)
            seen.append(cache.get(KEY))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80
    assert all(found == program for found in seen)


PROCESS = """
import sys
from pathlib import Path
from magweld.artifact import Place, Program, Value
from magweld.runtime.cache import DiskCache

constant = bytes(range(256)) * 1000
value = Value((len(constant),), "ui8", Place.CONSTANT)
program = Program((value,), (), (0,), 0, constants=(constant,))
cache = DiskCache(Path(sys.argv[1]), 3 * 256_000)
sys.stdin.readline()
hits = 0
for round in range(60):
    key = f"{round % 4:064x}"
    cache.put(key, program)
    found = cache.get(key)
    assert found is None or found == program
    hits += found is not None
print(hits)
"""


def test_processes_share_a_directory(tmp_path: Path) -> None:
    """Writing, reading and evicting at once; four programs where three have room."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path / "cache")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [error for _, error in outputs] == ["", "", ""]
    assert all(int(output) > 0 for output, _ in outputs)
    files = os.listdir(next((tmp_path / "cache").iterdir()))
    assert len(files) <= 4
    assert all(name.endswith(".program") for name in files)


def test_least_recently_used_leave_first(
    make_program: Callable[..., Program], tmp_path: Path
) -> None:
    nbytes = len(encode_program(make_program(b"x" * 1000), key_of(0).encode()))
    cache = DiskCache(tmp_path, max_bytes=3 * nbytes)
    program = make_program(b"x" * 1000)
    for number in range(3):
        cache.put(key_of(number), program)
        os.utime(cache.path(key_of(number)), (number, number))
    assert cache.get(key_of(0)) == program  # used now
    cache.put(key_of(3), program)
    kept = [number for number in range(4) if cache.path(key_of(number)).exists()]
    assert kept == [0, 2, 3]


def test_program_larger_than_the_cache_is_not_kept(
    make_program: Callable[..., Program], tmp_path: Path
) -> None:
    cache = DiskCache(tmp_path, max_bytes=4000)
    cache.put(key_of(0), make_program(b""))
    cache.put(key_of(1), make_program(b"x" * 8000))
    assert cache.path(key_of(0)).exists()
    assert not cache.path(key_of(1)).exists()


def test_files_of_crashed_writers_are_removed(
    make_program: Callable[..., Program], cache: DiskCache
) -> None:
    cache.put(KEY, make_program())
    abandoned = cache.path(KEY).with_name("abandoned.tmp")
    recent = cache.path(KEY).with_name("recent.tmp")
    unknown = cache.path(KEY).with_name("notes.txt")
    for path in (abandoned, recent, unknown):
        path.write_bytes(b"")
    long_ago = time.time() - 100_000
    for path in (abandoned, unknown):
        os.utime(path, (long_ago, long_ago))
    cache.put(KEY, make_program())
    assert not abandoned.exists()
    assert recent.exists()
    assert unknown.exists()
