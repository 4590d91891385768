"""Owns continuations: functions that go on in the middle of another function."""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType
from typing import Any, Final

from magweld.frontend.monitor.code_table import FUNCTION, SUSPENDABLE, slot_count
from magweld.frontend.segments.build import Build
from magweld.frontend.segments.liveness import (
    KnownFrame,
    Liveness,
    StackSlot,
    states_from,
)
from magweld.frontend.segments.shape import Continuation, Shape

_PREPARING: Final = ("EXTENDED_ARG", "KW_NAMES", "PRECALL")


class Continuations:
    """Makes continuations of one code object.

    Attributes:
        code: The code object.
        flow: Its control flow.
        liveness: Which variables matter where.
    """

    def __init__(self, code: CodeType) -> None:
        """Analyse the code.

        Raises:
            ValueError: No continuation can be made of code of this kind.
            StopRecordingError: Its stack depths cannot be determined.
        """
        if code.co_flags & SUSPENDABLE or not code.co_flags & FUNCTION:
            raise ValueError(f"{code.co_qualname} is no plain function")
        self.code = code
        self.liveness = Liveness(code)
        self.flow = self.liveness.flow
        self.flow.depths()
        self._states: dict[int, KnownFrame] = {}
        self._numbers = {i.offset: n for n, i in enumerate(self.flow.instructions)}

    def first(self, offset: int) -> int:
        """Return where an instruction begins: prefixes, and what prepares a call.

        A frame cannot go on between these instructions; they leave the stack as it is.
        """
        instructions = self.flow.instructions
        number = self._numbers[offset]
        while number and instructions[number - 1].opname in _PREPARING:
            number -= 1
        return instructions[number].offset

    def last(self, offset: int) -> dis.Instruction:
        """Return the instruction that begins at an offset, behind what prepares it."""
        instruction = self.flow.index[offset]
        while instruction.opname in _PREPARING:
            instruction = self.flow.index[self.flow.following[instruction.offset]]
        return instruction

    def after(self, offset: int) -> tuple[int, ...]:
        """Return where an instruction leads to when it does not raise."""
        last = self.last(offset)
        near = (self.flow.following.get(last.offset), last.argval)
        return tuple(o for o in self.flow.normal(last) if o in near)

    def behind(self, offset: int) -> tuple[int, ...]:
        """Return the same, but a result that is thrown away is gone by then."""
        result = self.after(offset)
        if len(result) == 1 and self.flow.index[result[0]].opname == "POP_TOP":
            return self.after(result[0])
        return result

    def make(
        self,
        entry: Shape,
        stops: Sequence[int] = (),
        calls: bool = False,
        handlers: bool = True,
    ) -> Continuation:
        """Return a continuation.

        Args:
            entry: Form of the state at which it begins. With `calls` the operands of
                the call are not part of the stack.
            stops: Offsets at which it packs its state and returns that; must not hold
                the entry.
            calls: Whether it begins by calling one more value in place of the call at
                the entry.
            handlers: Whether it handles exceptions as the original does.

        Raises:
            ValueError: The state at a stop depends on the path, or the function has
                too many variables.
        """
        entry = Shape(self.first(entry.offset), entry.slots, entry.stack)
        traps = [self.first(offset) for offset in stops]
        if entry.offset in traps and not calls:
            raise ValueError("a continuation cannot begin where it stops")
        return Build(self, entry, traps, calls).finish(handlers)

    def kinds(self, offset: int) -> tuple[StackSlot, ...]:
        """Return what is known about the value stack before an instruction."""
        if not self._states:
            flow, bound = self.flow, frozenset(range(slot_count(self.code)))
            resume = next(i for i in flow.instructions if i.opname == "RESUME")
            start = flow.following[resume.offset]
            self._states.update(states_from(flow, start, KnownFrame((), bound)))
        return self._states[offset].stack

    def shape(
        self, offset: int, state: KnownFrame, also: frozenset[int] = frozenset()
    ) -> Shape:
        """Return the form of the state at a stop.

        Args:
            state: What is known there.
            also: Variables that matter beside those that are live there.

        Raises:
            ValueError: It depends on the path.
        """
        if StackSlot.EITHER in state.stack:
            raise ValueError(f"the stack at {offset} depends on the path")
        slots = sorted(self.liveness.at(offset) | also)
        return Shape(offset, tuple(slots), state.stack)


class Sources:
    """Continuations by the code that they continue."""

    def __init__(self) -> None:
        self._sources: dict[int, Continuations] = {}
        self._made: dict[tuple[Any, ...], Continuation] = {}
        self._by_code: dict[int, Continuation] = {}

    def source(self, code: CodeType) -> Continuations:
        """Return the maker of continuations of a code object.

        Raises:
            ValueError: There are none for code of this kind.
        """
        known = self._sources.get(id(code))
        if known is None:
            # It holds the code, so the id cannot be used again.
            known = self._sources[id(code)] = Continuations(code)
        return known

    def make(
        self, code: CodeType, entry: Shape, stops: Sequence[int], calls: bool
    ) -> Continuation:
        """Return a continuation, see `Continuations.make`.

        Raises:
            ValueError: It cannot be made.
        """
        key = (id(code), entry, tuple(stops), calls)
        known = self._made.get(key)
        if known is None:
            known = self.source(code).make(entry, stops, calls)
            self._made[key] = known
            self._by_code[id(known.code)] = known
        return known

    def origin(self, code: CodeType) -> CodeType:
        """Return the original of the code of a continuation, other code as it is."""
        made = self._by_code.get(id(code))
        return code if made is None else made.origin

    def locate(self, code: CodeType, offset: int) -> int:
        """Return the offset in the original code."""
        made = self._by_code.get(id(code))
        if made is None:
            return offset
        if offset >= made.shift:
            return offset - made.shift
        # The prelude stands for the first instruction.
        return self.source(made.origin).last(made.entry.offset).offset

    def is_read(self, code: CodeType, offset: int, slot: int) -> bool:
        """Return whether the variable in a slot may be read from an offset on."""
        try:
            source = self.source(self.origin(code))
        except ValueError:
            return True
        return slot in source.liveness.at(self.locate(code, offset))

    def begins(self, code: CodeType) -> int:
        """Return where a frame has the values that it goes on with."""
        made = self._by_code.get(id(code))
        return 0 if made is None else made.taken

    def shift(self, code: CodeType) -> int:
        """Return where the original code begins in this code."""
        made = self._by_code.get(id(code))
        return 0 if made is None else made.shift
