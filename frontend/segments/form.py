"""Owns the state of a whole program between two instructions: a chain of frames."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

from magweld.frontend.segments.liveness import Slot, slot_names
from magweld.frontend.segments.shape import Shape
from magweld.frontend.state.nodes import Where
from magweld.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class FrameForm:
    """Form of one frame.

    Attributes:
        code: Its code.
        namespace: Its globals.
        shape: Form of its state; for a frame that waits for the result of a call,
            that of the state before the call without the operands.
    """

    __repr__ = short_repr

    code: CodeType
    namespace: dict[str, Any]
    shape: Shape

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells forms apart."""
        return id(self.code), id(self.namespace), self.shape

    def names(self) -> list[str]:
        """Return a readable name for each value of the state."""
        names = slot_names(self.code)
        values = sum(1 for slot in self.shape.stack if slot is not Slot.EMPTY)
        stack = [f"stack[{index}]" for index in range(values)]
        return [*(names[slot] for slot in self.shape.slots), *stack]


@dataclass(frozen=True, eq=False)
class Form:
    """Form of the state of a program: its frames, the outermost first."""

    __repr__ = short_repr

    frames: tuple[FrameForm, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells forms apart."""
        return tuple(frame.key for frame in self.frames)

    @property
    def where(self) -> str:
        """File, line and function of the instruction that comes next."""
        frame = self.frames[-1]
        place = Where(frame.code, frame.shape.offset)
        return f"{place} in {frame.code.co_name}"

    def names(self) -> list[str]:
        """Return a readable name for each value, outer frames marked."""
        result = []
        for depth, frame in enumerate(self.frames[:-1]):
            prefix = f"{frame.code.co_name}#{depth}: "
            result += [prefix + name for name in frame.names()]
        return result + self.frames[-1].names()

    @property
    def sizes(self) -> list[int]:
        """How many values each frame has."""
        return [frame.shape.size for frame in self.frames]


class Suspended(NamedTuple):
    """A program between two instructions.

    What goes on with it takes the values out of the list: from then on they end when
    the program lets go of them.

    Attributes:
        form: Form of its state.
        values: The state.
    """

    form: Form
    values: list[Any]


def take_first(values: list[Any], count: int) -> list[Any]:
    """Return the first values of a list, which loses them."""
    taken = values[:count]
    del values[:count]
    return taken
