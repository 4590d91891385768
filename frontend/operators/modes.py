"""Owns the modes of torch that observe a run: entered with it, left when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import torch.overrides as functions
import torch.utils._python_dispatch as operators

if TYPE_CHECKING:
    from magweld.frontend.operators.recorder import OperatorRecorder


class ObservingModes:
    """What observes torch below a run: the recorder's mode and that of its watch.

    The program may enter modes of its own above them, and need not leave these. So each
    of ours is taken out from wherever it lies in its stack.
    """

    def __init__(self, recorder: OperatorRecorder) -> None:
        self._recorder: Any = recorder
        self._watches = self._records = False

    def __enter__(self) -> Self:
        self._recorder.watch.__enter__()
        self._watches = True
        self._recorder.__enter__()
        self._records = True
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()

    def leave(self) -> bool:
        """Leave the modes; return False if one is at work, which is left later.

        While torch runs what a mode has got, the mode is in no stack: torch puts it
        back behind that.
        """
        if self._watches:
            self._watches = not _take(
                operators._get_current_dispatch_mode_stack,
                operators._pop_mode,
                operators._push_mode,
                self._recorder.watch,
            )
        if self._records:
            self._records = not _take(
                functions._get_current_function_mode_stack,
                functions._pop_mode,
                functions._push_mode,
                self._recorder,
            )
        return not (self._watches or self._records)


def _take(
    held: Callable[[], list[Any]],
    pop: Callable[[], Any],
    push: Callable[[Any], None],
    mode: Any,
) -> bool:
    """Take a mode out of a stack; return whether it was there."""
    if not any(one is mode for one in held()):
        return False
    above = []
    while (one := pop()) is not mode:
        above.append(one)
    for one in reversed(above):
        push(one)
    return True
