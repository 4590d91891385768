"""Owns the writing of a tool's result: all of it or nothing."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path


def write_output(text: str, target: str) -> None:
    """Write text as `write_data` writes bytes.

    Raises:
        OSError: The text could not be written completely.
    """
    write_data(text.encode("utf-8", "surrogateescape"), target)


def write_data(data: bytes, target: str) -> None:
    """Write bytes to a file, or to stdout for `-`.

    A regular file is replaced in one step and keeps its permissions; if anything
    fails, what it held before is still there.

    Raises:
        OSError: The bytes could not be written completely.
    """
    try:
        _write(data, target)
    except OSError as error:
        name = "<stdout>" if target == "-" else target
        reason = error.strerror or str(error)
        raise OSError(f"cannot write {name}: {reason}") from error


def _write(data: bytes, target: str) -> None:
    path = Path(os.path.realpath(target))
    if target == "-":
        _write_stdout(data)
    elif path.exists() and not path.is_file():
        path.write_bytes(data)  # a device or a pipe cannot be replaced
    else:
        _replace(path, data)


def _write_stdout(data: bytes) -> None:
    if sys.stdout is None:
        raise OSError("it is closed")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except OSError:
        # The interpreter flushes once more at exit, which would fail loudly.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _replace(path: Path, data: bytes) -> None:
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as stream:
            stream.write(data)
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
