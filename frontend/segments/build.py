"""Owns building the bytecode of continuations.

Jumps are relative to where they are, so the original bytecode is kept as it is, behind
a prelude that puts the state of the frame in place. Where a continuation has to stop,
one code unit is overwritten by an instruction that always raises, and the exception
table leads from there to a tail that packs the state of the frame.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.monitor.code_table import (
    CALLABLE_FIRST,
    TRAP,
    VARIADIC,
    slot_names,
)
from magweld.frontend.segments.assembly import (
    UNIT,
    Region,
    Writer,
    cut_regions,
    exception_table,
    location_table,
    size_of,
)
from magweld.frontend.segments.liveness import (
    KnownFrame,
    StackSlot,
    callable_pair,
    loads_method,
    states_from,
)
from magweld.frontend.segments.shape import STOPPED, UNBOUND, Continuation, Shape
from magweld.frontend.state.nodes import line_at

if TYPE_CHECKING:
    from magweld.frontend.segments.continuation import Continuations

_PLACEHOLDER: Final = Exception("no exception is handled")
_INPLACE_MULTIPLY: Final = 18
# LOAD_FAST of 3.12 does not look whether there is a value.
_LOAD_CHECKED: Final = "LOAD_FAST" if sys.version_info < (3, 12) else "LOAD_FAST_CHECK"


class Build:
    """Builds one continuation."""

    def __init__(
        self, source: Continuations, entry: Shape, traps: list[int], calls: bool
    ) -> None:
        self.source = source
        self.code = source.code
        self.entry = entry
        self.traps = traps
        self.calls = calls
        self.writer = Writer()
        self.regions: list[Region] = []
        self.consts = list(self.code.co_consts)
        self.names = list(slot_names(self.code))
        self.count = entry.size + calls
        # The first slot gets the list of the values.
        self.filled = max(self.count, 1)
        more = range(len(self.names), self.filled)
        self.names += (f"<{number}>" for number in more)
        self.trap_slot = len(self.names)
        self.names.append(TRAP)
        self.slots = len(self.names)
        self.peak = self.code.co_stacksize
        self.bound: dict[int, frozenset[int]] = {}

    def finish(self, handlers: bool) -> Continuation:
        """Return the continuation, with or without the handlers of the original."""
        jump = self._prelude()
        shift = self.writer.offset
        old = self._moved(shift) if handlers else []
        traps, shapes = self._stops()
        body = bytearray(self.code.co_code)
        for offset in traps:
            body[offset : offset + UNIT] = bytes(
                (dis.opmap["DELETE_FAST"], self.trap_slot)
            )
        self.writer.code += body
        tail = self.writer.offset
        for number, shape in enumerate(shapes):
            at = traps[number] + shift
            target = self._tail(number, shape, traps[number])
            self.regions.append(
                Region(at, at + UNIT, target, len(shape.stack), lasti=False)
            )
        old = cut_regions(old, [offset + shift for offset in traps])
        at = self.source.last(self.entry.offset).offset
        line = line_at(self.code, at) - self.code.co_firstlineno
        size = self.writer.offset - tail
        old_places = self.code.co_linetable
        places = location_table(jump, shift - jump, line, old_places, size)
        code = self._code(places, exception_table([*old, *self.regions]))
        bound = tuple(self.bound[offset] for offset in traps)
        state = (self.entry, self.calls, self.taken, shift, tuple(shapes), bound)
        return Continuation(code, self.code, *state)

    def _moved(self, shift: int) -> list[Region]:
        return [
            Region(r.start + shift, r.end + shift, r.target + shift, r.depth, r.lasti)
            for r in self.source.flow.regions
        ]

    def _code(self, places: bytes, table: bytes) -> CodeType:
        cells = (*self.code.co_cellvars, *self.code.co_freevars)
        more = range(len(self.names), self.slots)
        names = (*self.names, *(f"<{number}>" for number in more))
        return self.code.replace(
            co_argcount=1,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_nlocals=len(names),
            co_varnames=names,
            co_cellvars=cells,
            co_freevars=self._class_cell(),
            co_flags=self.code.co_flags & ~VARIADIC,
            co_code=bytes(self.writer.code),
            co_consts=tuple(self.consts),
            co_stacksize=self.peak,
            co_linetable=places,
            co_exceptiontable=table,
        )

    def _class_cell(self) -> tuple[str, ...]:
        # `super()` looks for this name among the free variables of its frame.
        used = "__class__" in self.code.co_freevars
        live = slot_names(self.code).index("__class__") if used else -1
        return ("__class__",) if live in self.entry.slots else ()

    def _prelude(self) -> int:
        """Write the prelude; return the offset of its last instruction, a jump."""
        write = self.writer
        if self._class_cell():
            write.emit("COPY_FREE_VARS", 1)
        write.emit("RESUME", 0)
        self._declare_cells()
        self._take_values()
        self._load_stack()
        count = len(self.entry.slots)
        for index in range(count):
            write.emit("LOAD_FAST", index)
        for slot in reversed(self.entry.slots):
            write.emit("STORE_FAST", slot)
        for index in range(self.filled):
            if index not in self.entry.slots:
                write.emit("DELETE_FAST", index)
        most = max(len(self.entry.stack) + count, self.count)
        self.peak = max(self.peak, most + 3)
        target = self._replacement()
        jump = write.offset
        write.emit("JUMP_FORWARD", target // UNIT)
        return jump

    def _declare_cells(self) -> None:
        # `locals()` looks for such an instruction before it looks into a cell.
        code, declared = self.code, Writer()
        for name in (*code.co_cellvars, *code.co_freevars):
            declared.emit("MAKE_CELL", self.names.index(name))
        if declared.offset:
            self.writer.emit("JUMP_FORWARD", declared.offset // UNIT)
            self.writer.code += declared.code

    def _take_values(self) -> None:
        """Take the values out of the list, so that nobody else holds them."""
        write = self.writer
        write.emit("LOAD_FAST", 0)
        write.emit("LOAD_FAST", 0)
        write.emit("UNPACK_SEQUENCE", self.count)
        for index in range(self.count):
            write.emit("STORE_FAST", index)
        # `*= 0` empties it without a call, which a profiler would see.
        self._constant(0)
        write.emit("BINARY_OP", _INPLACE_MULTIPLY)
        write.emit("POP_TOP")
        self.taken = write.offset

    def _load_stack(self) -> None:
        write, index = self.writer, len(self.entry.slots)
        for slot in self.entry.stack:
            if slot is StackSlot.EMPTY:
                write.emit("PUSH_NULL")
                continue
            write.emit("LOAD_FAST", index)
            index += 1
            if slot is StackSlot.OUTER:
                write.emit("PUSH_EXC_INFO")
                write.emit("POP_TOP")
        if self.calls and CALLABLE_FIRST:
            write.emit("LOAD_FAST", index)
            write.emit("PUSH_NULL")
        elif self.calls:
            write.emit("PUSH_NULL")
            write.emit("LOAD_FAST", index)

    def _replacement(self) -> int:
        """Write what takes the place of the first instruction; return where to go."""
        write, last = self.writer, self.source.last(self.entry.offset)
        arg = last.arg or 0
        start = write.offset
        if self.calls:
            write.emit_call()
        elif self.traps and loads_method(last.opname, arg):
            # A bound method may always stand for a function and its receiver.
            name = last.opname.replace("METHOD", "ATTR")
            write.emit(name, arg if name != last.opname else arg & ~1)
            write.emit("PUSH_NULL")
            if not CALLABLE_FIRST:
                write.emit("SWAP", 2)
        else:
            return self.entry.offset
        for region in self.source.flow.regions:
            if region.start <= last.offset < region.end:
                following = self.source.flow.following[last.offset]
                shift = write.offset + size_of("JUMP_FORWARD", following // UNIT)
                target = region.target + shift
                self.regions.append(
                    Region(start, write.offset, target, region.depth, region.lasti)
                )
        return self.source.flow.following[last.offset]

    def _stops(self) -> tuple[list[int], list[Shape]]:
        if not self.traps:
            return [], []
        if self.trap_slot > 0xFF:
            raise ValueError("too many variables")
        states = self._states()
        traps = [offset for offset in dict.fromkeys(self.traps) if offset in states]
        self.bound = {offset: states[offset].bound for offset in traps}
        live = self.source.liveness.at(self.entry.offset)
        # What is not read any more is there because its end matters.
        also = frozenset(self.entry.slots) - live
        if self.calls:
            # The next time the call may raise and a handler may read these.
            also |= live
        return traps, [self.source.shape(o, states[o], also) for o in traps]

    def _states(self) -> dict[int, KnownFrame]:
        bound = frozenset(self.entry.slots)
        flow, offset, stack = self.source.flow, self.entry.offset, self.entry.stack
        last = self.source.last(offset)
        if self.calls:
            start = KnownFrame((*stack, StackSlot.VALUE), bound)
            return states_from(flow, flow.following[last.offset], start, self.traps)
        if not loads_method(last.opname, last.arg or 0):
            return states_from(flow, offset, KnownFrame(stack, bound), self.traps)
        taken = 3 if last.opname == "LOAD_SUPER_ATTR" else 1
        stack = (*stack[: len(stack) - taken], *callable_pair(StackSlot.EMPTY))
        following = flow.following[last.offset]
        return states_from(flow, following, KnownFrame(stack, bound), self.traps)

    def _tail(self, number: int, shape: Shape, offset: int) -> int:
        """Write what packs the state at a stop; return where that begins."""
        write, start = self.writer, self.writer.offset
        first = len(self.names)
        write.emit("POP_TOP")
        temporaries: list[int] = []
        for position in reversed(range(len(shape.stack))):
            self._take(shape.stack[position], first + position)
            if shape.stack[position] is not StackSlot.EMPTY:
                temporaries.insert(0, first + position)
        self._constant(STOPPED)
        self._constant(number)
        for index, slot in enumerate(shape.slots):
            self._load(slot, 2 + index, slot in self.bound[offset])
        for temporary in temporaries:
            write.emit("LOAD_FAST", temporary)
        write.emit("BUILD_TUPLE", 2 + shape.size)
        write.emit("RETURN_VALUE")
        self.peak = max(self.peak, 4 + shape.size, 3 + len(shape.stack))
        if temporaries:
            self.slots = max(self.slots, temporaries[-1] + 1)
        return start

    def _take(self, slot: StackSlot, temporary: int) -> None:
        """Take the topmost position off the stack, its value to a variable."""
        write = self.writer
        if slot is StackSlot.EMPTY:
            self._constant(tuple)
            if CALLABLE_FIRST:
                write.emit("SWAP", 2)
            write.emit_call()
            write.emit("POP_TOP")
            return
        if slot is StackSlot.OUTER:
            # Makes the exception that is handled now a value on the stack.
            self._constant(_PLACEHOLDER)
            write.emit("PUSH_EXC_INFO")
            write.emit("POP_TOP")
        write.emit("STORE_FAST", temporary)
        if slot is StackSlot.OUTER:
            write.emit("POP_EXCEPT")

    def _load(self, slot: int, depth: int, bound: bool) -> None:
        """Load a variable, or the mark of one that is not bound."""
        write = self.writer
        if bound:
            write.emit("LOAD_FAST", slot)
            return
        start = write.offset
        write.emit(_LOAD_CHECKED, slot)
        end = write.offset
        handler = Writer()
        handler.emit("POP_TOP")
        handler.emit("LOAD_CONST", self._index(UNBOUND))
        write.emit("JUMP_FORWARD", handler.offset // UNIT)
        self.regions.append(Region(start, end, write.offset, depth, lasti=False))
        write.code += handler.code

    def _constant(self, value: Any) -> None:
        self.writer.emit("LOAD_CONST", self._index(value))

    def _index(self, value: Any) -> int:
        for index, known in enumerate(self.consts):
            if known is value:
                return index
        self.consts.append(value)
        return len(self.consts) - 1
