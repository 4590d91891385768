"""Owns the line that tells of a long wait: on a terminal, and nowhere else."""

from __future__ import annotations

import contextlib
import importlib
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

SECONDS_BEFORE_LINE = 1.0


def load_rich(name: str) -> Any:
    """Return a module of rich; its import leaves Python's random numbers as they are.

    Programs draw from the same generator: a seed gives what it gives without magweld.
    """
    if name in sys.modules:
        return sys.modules[name]
    state = random.getstate()
    try:
        return importlib.import_module(name)
    finally:
        random.setstate(state)


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
    status = load_rich("rich.console").Console(stderr=True).status(f"magweld: {text}")
    timer = threading.Timer(SECONDS_BEFORE_LINE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
