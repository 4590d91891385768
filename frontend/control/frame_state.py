"""Owns functions that go on in the middle of another function, with its values."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from magweld.frontend.monitor.stack import NULL
from magweld.frontend.segments.continuation import Continuations
from magweld.frontend.segments.liveness import Slot
from magweld.frontend.segments.shape import Shape

if TYPE_CHECKING:
    from magweld.frontend.lifting.join_expressions import Noted


@dataclass(frozen=True)
class FrameState:
    """The values in a frame at an instruction.

    Attributes:
        slots: Locals, cells and free variables; NULL where there is none.
        stack: Value stack, NULL for its empty entries.
        noted: Expressions in the frame, None if none are followed.
    """

    slots: tuple[Any, ...]
    stack: tuple[Any, ...]
    noted: Noted | None = None


@dataclass(frozen=True)
class ContinuedFunction:
    """A function that continues another one.

    Attributes:
        function: The function.
        shift: How many bytes its instructions lie behind those of the original.
        values: What it starts with.
    """

    function: FunctionType
    shift: int
    values: list[Any]

    def run(self) -> Any:
        """Go on, once; return what the original would return."""
        try:
            return self.function(*self.values)
        finally:
            self.values.clear()


def continue_at(
    original: FunctionType, offset: int, state: FrameState
) -> ContinuedFunction:
    """Return a function that runs the code of another from an instruction on.

    Exceptions leave it: it has none of the handlers of the original.

    Args:
        original: Whose code and globals are used.
        offset: Where it goes on, the prefixes of the instruction included.
        state: The values to go on with.

    Raises:
        ValueError: It cannot be made.
    """
    slots = tuple(n for n, value in enumerate(state.slots) if value is not NULL)
    stack = (Slot.EMPTY if value is NULL else Slot.VALUE for value in state.stack)
    shape = Shape(offset, slots, tuple(stack))
    made = _continuations(original.__code__).make(shape, handlers=False)
    values = [value for value in (*state.slots, *state.stack) if value is not NULL]
    function = made.function(original.__globals__, values)
    return ContinuedFunction(function, made.shift, values)


@functools.lru_cache(maxsize=128)
def _continuations(code: CodeType) -> Continuations:
    return Continuations(code)
