"""Owns the guard of a tool against crashes in native code.

A parser or a pass in native code can end the process by a signal. The work runs in a
child, so that the user still gets an error, an exit code and the old output file.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType

_INTERRUPTED = 130  # what shells report for SIGINT
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def run_supervised(name: str, work: Callable[[], int]) -> int:
    """Run `work` in a forked child and return its exit code, 1 after a crash.

    Call it before native threads are started: a fork takes along only one.

    Args:
        name: Name of the tool, for the message about a crash.
        work: Returns an exit code; may raise SystemExit.
    """
    if not hasattr(os, "fork"):
        return work()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    child = os.fork()
    if child == 0:
        _die_with_parent()
        os._exit(_run_to_end(work))
    code = _wait(child)
    if code >= 0:
        return code
    message = f"{name}: error: native code crashed ({signal.Signals(-code).name})"
    if sys.stderr is not None:
        print(message, file=sys.stderr)
    return 1


def _run_to_end(work: Callable[[], int]) -> int:
    try:
        code = work()
    except SystemExit as stop:  # argparse, after --help
        code = stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:
        return code or 1
    return code


def _wait(child: int) -> int:
    """Return the exit code of a child, negative for a signal."""

    def forward(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    before = signal.signal(signal.SIGTERM, forward)
    try:
        while True:
            try:
                _, status = os.waitpid(child, 0)
            except KeyboardInterrupt:
                continue  # the terminal sent it to the child as well
            return os.waitstatus_to_exitcode(status)
    finally:
        signal.signal(signal.SIGTERM, before)


def _die_with_parent() -> None:
    # Whoever kills the tool, a timeout for one, means its work.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
