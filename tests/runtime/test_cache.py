from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from magweld.artifact import (
    Program,
)
from magweld.runtime.cache import DiskCache
from magweld.runtime.container import decode_program, encode_program

KEY = "ab" * 32
LIMIT = 1 << 30


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", LIMIT)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_hit_after_put(make_program: Callable[..., Program], cache: DiskCache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, make_program())
    assert cache.get(KEY) == make_program()


def test_files_are_private(
    make_program: Callable[..., Program], cache: DiskCache
) -> None:
    previous = os.umask(0)
    try:
        cache.put(KEY, make_program())
    finally:
        os.umask(previous)
    path = cache.path(KEY)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(path.parent) == [path.name]


def damage_truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def damage_flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 0x10
    path.write_bytes(data)


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_foreign(path: Path) -> None:
    path.write_bytes(b"something else entirely" * 100)


def damage_version(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8] += 1
    path.write_bytes(data)


def damage_rename(path: Path) -> None:
    """The file of another key, intact."""
    data = encode_program(decode_program(path.read_bytes(), KEY.encode()), b"other")
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        damage_truncate,
        damage_flip,
        damage_empty,
        damage_foreign,
        damage_version,
        damage_rename,
    ],
)
def test_damaged_file_is_a_miss_and_goes(
    make_program: Callable[..., Program],
    cache: DiskCache,
    damage: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache.put(KEY, make_program())
    damage(cache.path(KEY))
    assert cache.get(KEY) is None
    assert "recompiling" in warnings(caplog)[0]
    assert not cache.path(KEY).exists()
    cache.put(KEY, make_program())
    assert cache.get(KEY) == make_program()


def test_entry_that_is_a_directory_is_a_miss(
    make_program: Callable[..., Program],
    cache: DiskCache,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache.path(KEY).mkdir(parents=True)
    cache.path(KEY).parent.chmod(0o700)
    assert cache.get(KEY) is None
    cache.put(KEY, make_program())
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("place", ["a file", "below a file", "read-only", "below null"])
def test_unusable_directory_costs_one_warning(
    make_program: Callable[..., Program],
    place: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "file"
    file.write_text("no directory")
    directory = {
        "a file": file,
        "below a file": file / "cache",
        "read-only": Path("/proc/self/cache"),
        "below null": Path("/dev/null/cache"),
    }[place]
    cache = DiskCache(directory, LIMIT)
    for _ in range(3):
        assert cache.get(KEY) is None
        cache.put(KEY, make_program())
    assert len(warnings(caplog)) == 1
    assert file.read_text() == "no directory"


@pytest.mark.parametrize("call", ["open", "write", "replace", "mkdir", "utime"])
def test_errors_of_the_file_system_are_no_errors(
    make_program: Callable[..., Program],
    cache: DiskCache,
    call: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = {"mkdir": Path}.get(call, os)
    if call == "write":
        monkeypatch.setattr("builtins.open", fail)
    else:
        monkeypatch.setattr(target, call, fail)
    for _ in range(2):
        cache.put(KEY, make_program())
        cache.get(KEY)
    monkeypatch.undo()
    assert len(warnings(caplog)) == (0 if call == "utime" else 1)
    left = sorted(p.name for p in cache.path(KEY).parent.glob("*.tmp"))
    assert left == []
    cache.put(KEY, make_program())
    assert cache.get(KEY) == make_program()


def test_others_must_not_be_able_to_write(
    make_program: Callable[..., Program],
    cache: DiskCache,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache.put(KEY, make_program())
    cache.path(KEY).parent.chmod(0o777)
    assert cache.get(KEY) is None
    cache.path(KEY).parent.chmod(0o700)
    cache.path(KEY).chmod(0o666)
    assert cache.get(KEY) is None
    cache.path(KEY).chmod(0o600)
    assert cache.get(KEY) == make_program()
    assert "writable by others" in warnings(caplog)[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user_are_not_run(
    make_program: Callable[..., Program], cache: DiskCache
) -> None:
    cache.put(KEY, make_program())
    os.chown(cache.path(KEY), 12345, 12345)
    assert cache.get(KEY) is None
    os.chown(cache.path(KEY), 0, 0)
    assert cache.get(KEY) == make_program()


def test_links_are_not_followed(
    make_program: Callable[..., Program], cache: DiskCache, tmp_path: Path
) -> None:
    cache.put(KEY, make_program())
    elsewhere = tmp_path / "elsewhere"
    cache.path(KEY).rename(elsewhere)
    cache.path(KEY).symlink_to(elsewhere)
    assert cache.get(KEY) is None
