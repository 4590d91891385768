"""Owns the capture of what native code prints to stderr behind Python's back."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STDERR = 2


@contextmanager
def captured_stderr() -> Iterator[Callable[[], list[str]]]:
    """Collect what is written to file descriptor 2; for single-threaded tools only.

    Yields:
        A function that returns the lines once the `with` is left.
    """
    if sys.stderr is None:  # closed by the caller: there is nothing to divert
        yield list
        return
    sys.stderr.flush()
    lines: list[str] = []
    saved = os.dup(_STDERR)
    try:
        with tempfile.TemporaryFile() as sink:
            os.dup2(sink.fileno(), _STDERR)
            try:
                yield lambda: lines
            finally:
                os.dup2(saved, _STDERR)
                sink.seek(0)
                lines += sink.read().decode("utf-8", "replace").splitlines()
    finally:
        os.close(saved)
