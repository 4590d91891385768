"""Owns the line that tells of a long wait: on a terminal, and nowhere else."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from rich.console import Console

SECONDS_BEFORE_LINE = 1.0


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show a line on stderr while something takes longer than a second.

    The line goes when it has ended. Nothing is written if stderr is no terminal.

    Args:
        text: What is being done.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    status = Console(stderr=True).status(f"magweld: {text}")
    timer = threading.Timer(SECONDS_BEFORE_LINE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
