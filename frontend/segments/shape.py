"""Owns the state of a program between two instructions: frames, and their chain."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any, Final, NamedTuple

from magweld.frontend.monitor.code_table import slot_names
from magweld.frontend.segments.liveness import StackSlot
from magweld.frontend.state.ends import code_at_end
from magweld.frontend.state.nodes import Where
from magweld.short_repr import short_repr


class _Mark:
    """A value that no program can hold."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


STOPPED: Final = _Mark("<stopped>")
UNBOUND: Final = _Mark("<unbound>")


@dataclass(frozen=True)
class Shape:
    """Form of the state of a frame before an instruction.

    The values of a state are those of its slots, then those of the value stack from
    the bottom: empty positions left out, for OUTER the exception that is handled.

    Attributes:
        offset: Offset of the instruction.
        slots: Numbers of the local, cell and free variable slots that hold a value.
            Those of cell and free variables hold the cell.
        stack: Positions of the value stack.
    """

    offset: int
    slots: tuple[int, ...]
    stack: tuple[StackSlot, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.slots) + sum(1 for s in self.stack if s is not StackSlot.EMPTY)


def outlives(value: Any) -> bool:
    """Return whether a variable that is not read any more has to keep its value.

    Its end, with that of the frame, runs code, or a weak reference would show it.
    """
    return weakref.getweakrefcount(value) > 0 or bool(code_at_end(value))


@dataclass(frozen=True)
class Continuation:
    """A function that takes the state of a frame and goes on from there.

    Attributes:
        code: Its code object; the parameter is a list of the values of the state,
            which it empties.
        origin: Code object of the original function.
        entry: Form of the state.
        calls: Whether one more value is a callable, whose result takes the place of
            that of the call at `entry.offset`.
        taken: Offset behind the instructions that empty the list.
        shift: Where the original code begins in the new one.
        stops: Forms of the state where it stops instead of going on.
        bound: For each stop, the slots that certainly hold a value there.
    """

    __repr__ = short_repr

    code: CodeType
    origin: CodeType
    entry: Shape
    calls: bool
    taken: int
    shift: int
    stops: tuple[Shape, ...]
    bound: tuple[frozenset[int], ...] = ()

    def function(
        self, namespace: dict[str, Any], values: Sequence[Any]
    ) -> FunctionType:
        """Return the function to be called with a list of the state and the callable.

        Args:
            values: What the list holds; needed for the cell of the class that `super()`
                looks for.
        """
        cells: tuple[CellType, ...] = ()
        if self.code.co_freevars:
            slot = slot_names(self.origin).index("__class__")
            cells = (values[self.entry.slots.index(slot)],)
        return FunctionType(self.code, namespace, self.code.co_name, None, cells)


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
        values = sum(1 for slot in self.shape.stack if slot is not StackSlot.EMPTY)
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
