"""Owns the caches on disk: values by key, one checked file each.

Files are written under another name and renamed, so a reader sees a whole file or
none, and two writers of one key leave one of two equal files. Whatever is wrong
with the directory or a file costs time only: it is logged and made again.

The compile cache holds machine code that this process will run. It is used only where
nobody else can write: directory and files must belong to the user (or to root) and
be writable by the owner alone. A checksum finds damage; it is no signature.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from uuid import uuid4

from magweld.artifact import Program
from magweld.runtime.container import (
    CONTAINER_VERSION,
    ContainerError,
    decode_program,
    encode_program,
)

_logger = logging.getLogger(__name__)

T = TypeVar("T")

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


@dataclass(frozen=True)
class Format(Generic[T]):
    """How values of a kind become files.

    Attributes:
        name: Of the cache, for messages.
        suffix: Of its files.
        encode: Returns the bytes of a value under a key.
        decode: Returns the value; raises `ContainerError` for what is none.
    """

    name: str
    suffix: str
    encode: Callable[[T, bytes], bytes]
    decode: Callable[[bytes, bytes], T]


class FileCache(Generic[T]):
    """Values in a directory, safe under concurrent threads and processes.

    Args:
        directory: Where to keep them; it is made when first needed.
        max_bytes: Size above which the least recently used files are deleted.
        format: How values become files.
    """

    def __init__(self, directory: Path, max_bytes: int, format: Format[T]) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._format = format
        self._has_warned = False

    def path(self, key: str) -> Path:
        """Return the file of a key, which need not exist."""
        return self._directory / f"{key}{self._format.suffix}"

    def keys(self) -> list[str]:
        """Return the keys that have a file, sorted."""
        try:
            paths = list(self._directory.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            self._warn("read", error)
            return []
        return sorted(p.stem for p in paths if p.suffix == self._format.suffix)

    def get(self, key: str) -> T | None:
        """Return the value of a key, None if there is no intact one."""
        path = self.path(key)
        try:
            data = _read_private(path)
            value = self._format.decode(data, key.encode())
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
        return value

    def put(self, key: str, value: T) -> None:
        """Keep a value; failing to do so is logged once and is no error."""
        data = self._format.encode(value, key.encode())
        if len(data) > self._max_bytes:
            _logger.info("a file of %d bytes exceeds the cache's size", len(data))
            return
        try:
            self._make_directory()
            self._write(self.path(key), data)
            self._evict()
        except OSError as error:
            self._warn("write", error)

    def remove(self, key: str) -> None:
        """Forget a value."""
        _delete(self.path(key))

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
            if path.suffix == self._format.suffix:
                yield _Entry(path, status.st_size, status.st_mtime)
            elif path.suffix == _TEMPORARY_SUFFIX and status.st_mtime < oldest_writer:
                _delete(path)

    def _warn(self, action: str, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "cannot %s the %s, going on without it: %s",
                action,
                self._format.name,
                error,
            )


PROGRAMS = Format("compile cache", ".program", encode_program, decode_program)


class DiskCache(FileCache[Program]):
    """Programs in a directory.

    Args:
        directory: Where to keep them; it is made when first needed. Each format
            version has a folder of its own in it.
        max_bytes: Size above which the least recently used programs are deleted.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        folder = directory / f"programs-v{CONTAINER_VERSION}"
        super().__init__(folder, max_bytes, PROGRAMS)


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
