from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from magweld.artifact import (
    ExternalStep,
    KernelStep,
    LibraryStep,
    Place,
    Program,
    Value,
)
from magweld.runtime.cache import DiskCache
from magweld.runtime.container import (
    ContainerError,
    decode_program,
    decode_request,
    encode_program,
    encode_request,
)
from magweld.runtime.fingerprint import compiler_identity, program_key

KEY = "ab" * 32
LIMIT = 1 << 30


def make_program(constant: bytes = b"\x00\xff" * 8) -> Program:
    return Program(
        values=(
            Value((2, 3), "f32", Place.INPUT),
            Value((2, 3), "f32", Place.ARENA, offset=64),
            Value((len(constant),), "ui8", Place.CONSTANT, index=0),
            Value((2, 3), "f32", Place.ADOPTED),
        ),
        steps=(
            KernelStep("kernel_0_launch", (0,), (1,)),
            LibraryStep("convolution", (0, 1), (3,), {"strides": [1, 2]}),
            ExternalStep("node", (1,), (3,)),
        ),
        results=(3, 2),
        arena_bytes=128,
        objects=(b"\x7fELF object", b""),
        constants=(constant,),
        report={"groups": [{"name": "a", "bytes": 10}]},
    )


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", LIMIT)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_program_survives_the_container() -> None:
    program = make_program()
    assert decode_program(encode_program(program, b"key"), b"key") == program


def test_request_survives_its_encoding() -> None:
    assert decode_request(encode_request("options é", "text")) == ("options é", "text")
    with pytest.raises(ContainerError):
        decode_request(b"\x03")


def test_every_truncation_is_found() -> None:
    data = encode_program(make_program())
    for length in range(len(data)):
        with pytest.raises(ContainerError):
            decode_program(data[:length])
    with pytest.raises(ContainerError):
        decode_program(data + b"\x00")


def test_every_flipped_bit_is_found() -> None:
    data = bytearray(encode_program(make_program()))
    for position in range(len(data)):
        bit = 1 << position % 8
        data[position] ^= bit
        with pytest.raises(ContainerError):
            decode_program(bytes(data))
        data[position] ^= bit
    assert decode_program(bytes(data)) == make_program()


def test_hit_after_put(cache: DiskCache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, make_program())
    assert cache.get(KEY) == make_program()


def test_files_are_private(cache: DiskCache) -> None:
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
    """The intact file of another key."""
    path.write_bytes(encode_program(make_program(), b"cd" * 32))


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
    cache: DiskCache, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put(KEY, make_program())
    damage(cache.path(KEY))
    assert cache.get(KEY) is None
    assert "recompiling" in warnings(caplog)[0]
    assert not cache.path(KEY).exists()
    cache.put(KEY, make_program())
    assert cache.get(KEY) == make_program()


def test_entry_that_is_a_directory_is_a_miss(
    cache: DiskCache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.path(KEY).mkdir(parents=True)
    cache.path(KEY).parent.chmod(0o700)
    assert cache.get(KEY) is None
    cache.put(KEY, make_program())
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("place", ["a file", "below a file", "read-only", "below null"])
def test_unusable_directory_costs_one_warning(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
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
    cache: DiskCache, caplog: pytest.LogCaptureFixture
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
def test_files_of_another_user_are_not_run(cache: DiskCache) -> None:
    cache.put(KEY, make_program())
    os.chown(cache.path(KEY), 12345, 12345)
    assert cache.get(KEY) is None
    os.chown(cache.path(KEY), 0, 0)
    assert cache.get(KEY) == make_program()


def test_links_are_not_followed(cache: DiskCache, tmp_path: Path) -> None:
    cache.put(KEY, make_program())
    elsewhere = tmp_path / "elsewhere"
    cache.path(KEY).rename(elsewhere)
    cache.path(KEY).symlink_to(elsewhere)
    assert cache.get(KEY) is None


def key_of(number: int) -> str:
    return f"{number:064x}"


def test_least_recently_used_leave_first(tmp_path: Path) -> None:
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


def test_program_larger_than_the_cache_is_not_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=1000)
    cache.put(key_of(0), make_program(b""))
    cache.put(key_of(1), make_program(b"x" * 2000))
    assert cache.path(key_of(0)).exists()
    assert not cache.path(key_of(1)).exists()


def test_files_of_crashed_writers_are_removed(cache: DiskCache) -> None:
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


def test_eviction_that_races_with_another_process(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    cache.put(KEY, make_program())
    gone = cache.path(KEY).with_name("gone.program")
    listed = [cache.path(KEY), gone]
    monkeypatch.setattr(Path, "iterdir", lambda self: iter(listed))
    cache.put(KEY, make_program())
    assert warnings(caplog) == []


def test_threads_on_one_key_see_whole_programs(cache: DiskCache) -> None:
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


def test_key_depends_on_all_that_decides() -> None:
    keys = {
        program_key(identity, options, text)
        for identity in ("a", "ab")
        for options in ("", "b", "bc")
        for text in ("c", "bc", "")
    }
    assert len(keys) == 2 * 3 * 3
    assert program_key("a", "b", "c") == program_key("a", "b", "c")


def test_identity_names_the_toolchain_and_the_host() -> None:
    identity = compiler_identity()
    for part in ("torch-mlir 2", "llvmlite 0", "cpu ", "features ", "device "):
        assert part in identity
    assert identity == compiler_identity()
