"""Owns what answers a call whose compiled code has raised: torch runs the graph."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any


class StandBy:
    """Runs a graph through torch in the place of code that has raised.

    The code must not have written anything by then that anybody sees.

    Args:
        run: Runs the graph through torch.

    Attributes:
        run: The same.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run
        self._tell: weakref.WeakMethod[Callable[[Exception], None]] | None = None

    def tell(self, failed: Callable[[Exception], None]) -> None:
        """Have a method told what the code raises where torch does not.

        Its object, which holds the code, is not kept by this.
        """
        self._tell = weakref.WeakMethod(failed)

    def answer(self, inputs: Sequence[Any], error: Exception) -> Any:
        """Return what torch returns.

        Args:
            inputs: Of the call.
            error: What the code has raised.

        Raises:
            Exception: What torch raises: the graph itself is at fault.
        """
        result = self.run(*inputs)
        failed = None if self._tell is None else self._tell()
        if failed is not None:
            failed(error)
        return result


def stand_by_of(compiled: object) -> StandBy | None:
    """Return what answers calls in which some compiled code raises, if anything."""
    found = getattr(compiled, "stand_by", None)
    return found if isinstance(found, StandBy) else None
