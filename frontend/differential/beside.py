"""Owns the threads beside a check: what one of them writes would be undone with it."""

from __future__ import annotations

import concurrent.futures.thread as pools
import os
import sys
import threading
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import magweld
from magweld.frontend.differential.structure import is_library_file

_PACKAGES: Final = f"{os.sep}site-packages{os.sep}"
# Of its threads none runs the program but within a call.
_OWN: Final = os.path.dirname(os.path.abspath(magweld.__file__)) + os.sep
_THREADING: Final = threading.__file__
# Where a thread waits until another one has something for it.
_WAITS: Final = (
    threading.Condition.wait,
    threading.Thread.join,
    getattr(threading.Thread, "_wait_for_tstate_lock", None),
    vars(pools)["_worker"],
)
_WAITING: Final[frozenset[CodeType]] = frozenset(
    function.__code__ for function in _WAITS if isinstance(function, FunctionType)
)


def running_beside() -> str:
    """Return the name of another thread that runs code of the program, "" if none does.

    A thread that waits for another one is none, nor one of a library for its own ends.
    """
    own, frames = threading.get_ident(), sys._current_frames()
    # A frame that holds itself would keep its callers and all that they hold.
    frames.pop(own, None)
    for thread in threading.enumerate():
        # One that has just been started has no number yet, or no frame.
        number: Any = thread.ident
        frame = frames.pop(number, None)
        if number != own and (frame is None or _runs_program(frame)):
            return thread.name
    return "of another kind" if any(map(_runs_program, frames.values())) else ""


def _runs_program(frame: FrameType) -> bool:
    if frame.f_code in _WAITING:
        # After some time it goes on by itself.
        if frame.f_locals.get("timeout") in (None, -1):
            return False
    elif frame.f_code.co_filename == _THREADING:
        return True  # what it is to run is about to begin, or is native code
    outer: FrameType | None = frame
    while outer is not None:
        if not _is_of_library(outer.f_code.co_filename):
            return True
        outer = outer.f_back
    return False


def _is_of_library(filename: str) -> bool:
    return (
        filename.startswith((_OWN, "<frozen "))
        or _PACKAGES in filename
        or is_library_file(filename)
    )
