"""Owns what the front end's frames hold once an exception has left a traced call."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Iterator
from types import FrameType
from typing import Final

import magweld

# Where code of this package lies; in an editable installation that is not one folder.
_OWN: Final = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep
    for path in (magweld.__file__, __file__)
)
_SUSPENDABLE: Final = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
)


def empty_frames(error: BaseException) -> None:
    """Have the front end's frames that an exception has left let go of their variables.

    The traceback keeps the frames of the program, and each frame keeps its callers. In
    eager mode these are the program's own; the front end's would keep arguments,
    records and snapshots for as long as the exception is kept.

    Args:
        error: The exception; its traceback begins with the frame that handles it.
    """
    for frame in _left_frames(error):
        code = frame.f_code
        # Clearing a suspended generator would end it.
        if code.co_filename.startswith(_OWN) and not code.co_flags & _SUSPENDABLE:
            with contextlib.suppress(RuntimeError):  # it runs
                frame.clear()


def _left_frames(error: BaseException) -> Iterator[FrameType]:
    """Yield the frames that tracebacks keep, but for those that still run."""
    handling = None if error.__traceback__ is None else error.__traceback__.tb_frame
    seen: set[FrameType | None] = {handling, None}
    for one in _with_contexts(error):
        place = one.__traceback__
        while place is not None:
            frame: FrameType | None = place.tb_frame
            while frame not in seen:
                assert frame is not None
                seen.add(frame)
                yield frame
                frame = frame.f_back
            place = place.tb_next


def _with_contexts(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that it came from."""
    waiting: list[BaseException | None] = [error]
    seen: list[BaseException] = []
    while waiting:
        one = waiting.pop()
        if one is not None and not any(one is known for known in seen):
            seen.append(one)
            yield one
            waiting += (one.__cause__, one.__context__)
