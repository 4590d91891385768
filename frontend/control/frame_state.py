"""Owns the values in a frame, and functions that go on with them in its middle."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from magweld.frontend.control.flow import Join
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.segments.continuation import Continuations
from magweld.frontend.segments.liveness import Slot, slot_count
from magweld.frontend.segments.shape import Shape
from magweld.frontend.state.values import is_scalar, same_scalar

if TYPE_CHECKING:
    from magweld.frontend.lifting.join_expressions import Noted
    from magweld.frontend.session.session import Session


@dataclass(frozen=True)
class FrameState:
    """The values in a frame at an instruction.

    Attributes:
        slots: Locals, cells and free variables; NULL where there is none.
        stack: Value stack, NULL for its empty entries.
        noted: Expressions in the frame, None if none are followed.
        nodes: Nodes of the tensors in it, by id, where they matter. One object may
            stand for several nodes in turn.
    """

    slots: tuple[Any, ...]
    stack: tuple[Any, ...]
    noted: Noted | None = None
    nodes: Mapping[int, fx.Node] = field(default_factory=dict)

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors in the slots and on top of the stack."""
        values = (*self.slots, *self.stack[-1:])
        return [value for value in values if isinstance(value, torch.Tensor)]

    def node(self, slot: int) -> fx.Node:
        """Return the node of the tensor in a slot."""
        return self.nodes[id(self.slots[slot])]

    def ends(self, carried: Sequence[int]) -> list[fx.Node]:
        """Return the nodes of carried tensors and of the one to be tested."""
        return [*map(self.node, carried), self.nodes[id(self.stack[-1])]]

    def differs(self, before: FrameState, slot: int) -> bool:
        """Return whether a slot holds something else than it did before."""
        mine, other = self.slots[slot], before.slots[slot]
        if isinstance(mine, torch.Tensor):
            return mine is not other or self.node(slot) is not before.node(slot)
        return mine is not other and not (is_scalar(mine) and same_scalar(mine, other))


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
            return self.function(self.values)
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


def read_state(session: Session, observer: Observer, depth: int) -> FrameState:
    """Return the values in a frame whose event this is.

    Args:
        depth: How much of the value stack counts.
    """
    reader = session.reader
    count = slot_count(observer.code)
    slots = tuple(reader.slot(observer.frame, index) for index in range(count))
    stack = tuple(reader.stack(observer.frame, depth))
    plain = tuple(reader.plain(value) for value in stack)
    return FrameState(slots, plain, observer.noted(depth))


def state_at_end(
    session: Session, join: Join, observer: Observer, row: Row
) -> FrameState:
    """Return what lives at the end of a branch."""
    if not join.returns:
        return read_state(session, observer, row.depth)
    value = row.argval
    if row.opname != "RETURN_CONST":
        value = session.reader.stack(observer.frame, row.depth)[-1]
    return FrameState((), (value,), observer.noted(row.depth))
