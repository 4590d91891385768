"""Owns functions that go on in the middle of another function, with its values."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

from magweld.frontend.monitor.stack import NULL
from magweld.frontend.segments.assembly import UNIT, Writer, location_entries
from magweld.frontend.segments.liveness import slot_count

_VARIADIC: Final = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS
_PRELUDE_STACK: Final = 3


@dataclass(frozen=True)
class FrameState:
    """The values in a frame at an instruction.

    Attributes:
        slots: Locals, cells and free variables; NULL where there is none.
        stack: Value stack, NULL for its empty entries.
    """

    slots: tuple[Any, ...]
    stack: tuple[Any, ...]


@dataclass(frozen=True)
class ArmFunction:
    """A function that continues another one.

    Attributes:
        function: The function; it ignores its arguments.
        shift: How many bytes its instructions lie behind those of the original.
        values: What it starts with.
    """

    function: FunctionType
    shift: int
    values: list[Any]

    def run(self) -> Any:
        """Go on, once; return what the original would return."""
        try:
            return self.function(*(None,) * self.function.__code__.co_argcount)
        finally:
            self.values.clear()


def continue_at(original: FunctionType, offset: int, state: FrameState) -> ArmFunction:
    """Return a function that runs the code of another from an instruction on.

    Exceptions leave it: it has none of the handlers of the original.

    Args:
        original: Whose code, globals and closure are used.
        offset: Where it goes on, the prefixes of the instruction included.
        state: The values to go on with.
    """
    code = original.__code__
    values = [value for value in (*state.slots, *state.stack) if value is not NULL]
    box = len(code.co_consts)
    numbers = {index: box + 1 + index for index in range(len(values))}
    prelude = Writer()
    prelude.emit("RESUME")
    given = 0
    for slot, value in enumerate(state.slots):
        if value is NULL:
            if slot < code.co_argcount:
                prelude.emit("DELETE_FAST", slot)
            continue
        _load_item(prelude, box, numbers[given])
        prelude.emit("STORE_FAST", slot)
        given += 1
    for value in state.stack:
        if value is NULL:
            prelude.emit("PUSH_NULL")
            continue
        _load_item(prelude, box, numbers[given])
        given += 1
    prelude.emit("JUMP_FORWARD", offset // UNIT)
    body = code.replace(
        co_code=bytes(prelude.code) + code.co_code,
        co_consts=(*code.co_consts, values, *range(len(values))),
        co_stacksize=code.co_stacksize + _PRELUDE_STACK,
        co_exceptiontable=b"",
        co_linetable=location_entries(prelude.offset, None) + code.co_linetable,
        co_flags=code.co_flags & ~_VARIADIC,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
    )
    if body.co_nlocals != code.co_nlocals or slot_count(body) != slot_count(code):
        raise ValueError("the slots of the code have moved")
    function = FunctionType(
        body, original.__globals__, original.__name__, (), original.__closure__
    )
    return ArmFunction(function, prelude.offset, values)


def _load_item(writer: Writer, box: int, number: int) -> None:
    """Push an element of a constant list, its index being a constant too."""
    writer.emit("LOAD_CONST", box)
    writer.emit("LOAD_CONST", number)
    writer.emit("BINARY_SUBSCR")
