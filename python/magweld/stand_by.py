"""Owns what answers a call whose compiled code has raised: torch runs the graph."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

PutBack = Callable[[], None]


class StandBy:
    """Runs a graph through torch in the place of code that has raised.

    The code must not have written anything by then that anybody sees.

    Args:
        run: Runs the graph through torch.
        save: Saves what the code may change although it raises: the random generators
            that it draws from. The result puts them back. None for nothing.

    Attributes:
        run: The same.
        save: The same.
    """

    def __init__(
        self, run: Callable[..., Any], save: Callable[[], PutBack] | None = None
    ) -> None:
        self.run = run
        self.save = save
        self._tell: weakref.WeakMethod[Callable[[Exception], None]] | None = None

    def tell(self, failed: Callable[[Exception], None]) -> None:
        """Have a method told what the code raises where torch does not.

        Its object, which holds the code, is not kept by this.
        """
        self._tell = weakref.WeakMethod(failed)

    def answer(
        self, inputs: Sequence[Any], error: Exception, put_back: PutBack | None = None
    ) -> Any:
        """Return what torch returns.

        Args:
            inputs: Of the call.
            error: What the code has raised.
            put_back: What `save` has returned before the code ran.

        Raises:
            Exception: What torch raises: the graph itself is at fault.
        """
        if put_back is not None:
            put_back()
        result = self.run(*inputs)
        failed = None if self._tell is None else self._tell()
        if failed is not None:
            failed(error)
        return result


def stand_by_of(compiled: object) -> StandBy | None:
    """Return what answers calls in which some compiled code raises, if anything."""
    found = getattr(compiled, "stand_by", None)
    return found if isinstance(found, StandBy) else None
