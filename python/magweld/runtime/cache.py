"""Owns the compile cache on disk: programs by key, one checked file each.

Files are written under another name and renamed, so a reader sees a whole file or
none, and two writers of one key leave one of two equal files. Whatever is wrong
with the directory or a file costs time only: it is logged and compiled again.

The cache holds machine code that this process will run. It is used only where
nobody else can write: directory and files must belong to the user (or to root) and
be writable by the owner alone. A checksum finds damage; it is no signature.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from magweld.artifact import Program
from magweld.runtime.container import (
    CONTAINER_VERSION,
    ContainerError,
    decode_program,
    encode_program,
)

_logger = logging.getLogger(__name__)

_SUFFIX = ".program"
_TEMPORARY_SUFFIX = ".tmp"
# Nobody writes one file for so long; older temporary files are left from a crash.
_ABANDONED_SECONDS = 3600.0


class CacheAccessError(OSError):
    """A cache directory or file that must not be trusted."""


@dataclass(frozen=True)
class _Entry:
    path: Path
    nbytes: int
    used: float


class DiskCache:
    """Programs in a directory, safe under concurrent threads and processes.

    Args:
        directory: Where to keep them; it is made when first needed. Each format
            version has a folder of its own in it.
        max_bytes: Size above which the least recently used programs are deleted.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory = directory / f"programs-v{CONTAINER_VERSION}"
        self._max_bytes = max_bytes
        self._has_warned = False

    def path(self, key: str) -> Path:
        """Return the file of a key, which need not exist."""
        return self._directory / f"{key}{_SUFFIX}"

    def get(self, key: str) -> Program | None:
        """Return the program of a key, None if there is no intact one."""
        path = self.path(key)
        try:
            data = _read_private(path)
            program = decode_program(data, key.encode())
        except FileNotFoundError:
            return None
        except ContainerError as error:
            _logger.warning("cache file %s is not usable, recompiling: %s", path, error)
            _delete(path)
            return None
        except OSError as error:
            self._warn("read", error)
            return None
        # Marks the use; where it is not allowed, the order of deletion suffers.
        with contextlib.suppress(OSError):
            os.utime(path)
        return program

    def put(self, key: str, program: Program) -> None:
        """Keep a program; failing to do so is logged once and is no error."""
        data = encode_program(program, key.encode())
        if len(data) > self._max_bytes:
            _logger.info("program of %d bytes exceeds the cache's size", len(data))
            return
        try:
            self._make_directory()
            self._write(self.path(key), data)
            self._evict()
        except OSError as error:
            self._warn("write", error)

    def _make_directory(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(self._directory, os.stat(self._directory))

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f"{path.stem}-{uuid4().hex}{_TEMPORARY_SUFFIX}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            _delete(temporary)
            raise

    def _evict(self) -> None:
        entries = sorted(self._entries(), key=lambda entry: entry.used)
        excess = sum(entry.nbytes for entry in entries) - self._max_bytes
        for entry in entries:
            if excess <= 0:
                break
            _delete(entry.path)
            excess -= entry.nbytes

    def _entries(self) -> Iterator[_Entry]:
        oldest_writer = time.time() - _ABANDONED_SECONDS
        for path in self._directory.iterdir():
            try:
                status = path.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # another process deleted or renamed it
            if path.suffix == _SUFFIX:
                yield _Entry(path, status.st_size, status.st_mtime)
            elif path.suffix == _TEMPORARY_SUFFIX and status.st_mtime < oldest_writer:
                _delete(path)

    def _warn(self, action: str, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "cannot %s the compile cache, going on without it: %s", action, error
            )


def _read_private(path: Path) -> bytes:
    # Without following links: a link could lead to a file somebody else controls.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        _check_private(path, os.fstat(fd))
        _check_private(path.parent, os.stat(path.parent))
        return file.read()


def _check_private(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise CacheAccessError(f"{path} belongs to user {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CacheAccessError(f"{path} is writable by others than its owner")


def _delete(path: Path) -> None:
    # Deleting is a courtesy: what cannot be deleted is only read in vain.
    with contextlib.suppress(OSError):
        path.unlink()
