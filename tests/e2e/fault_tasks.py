"""Tasks for compile workers that do not come back as they should."""

from __future__ import annotations

import os
import time
from pathlib import Path

from magweld.compiler import compile_module

PID_FILE = "MAGWELD_TEST_PID_FILE"


def hang_once(payload: bytes) -> bytes:
    """Tell the process id and wait to be killed; compile when called again."""
    path = Path(os.environ[PID_FILE])
    if path.exists():
        return compile_module(payload)
    part = path.with_suffix(".part")
    part.write_text(str(os.getpid()), encoding="ascii")
    part.rename(path)
    time.sleep(600)
    return b""


def abort(payload: bytes) -> bytes:
    """End as native code that fails an assertion."""
    os.abort()


def refuse(payload: bytes) -> bytes:
    """Raise as a compiler with a bug."""
    raise RuntimeError("the tile is neither here nor there")


def answer_garbage(payload: bytes) -> bytes:
    """Return what is no program."""
    return payload[::-1]
