"""Owns which instructions of newer versions of CPython go by the name of older ones.

They do the same to the values that the monitor follows. An instruction keeps its
number, its argument and its place: only the name, by which rules are found, is the
older one.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from types import CodeType
from typing import Any, Final

# Of 3.14. A reference that is borrowed from a variable is one to the same object; an
# integer in the instruction is a constant; an iterator is a value as any other.
NAMES: Final = {
    "LOAD_FAST_BORROW": "LOAD_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST",
    "LOAD_SMALL_INT": "LOAD_CONST",
    "NOT_TAKEN": "NOP",
    "POP_ITER": "POP_TOP",
}
# 3.12 has one instruction for what the interpreter seldom does; these are as they were.
INTRINSICS: Final = {5: "UNARY_POSITIVE", 6: "LIST_TO_TUPLE"}
# 3.14 has one instruction for all binary operators and for subscripts.
SUBSCRIPT: Final = "BINARY_SUBSCR"
_OPERATORS: Final[Any] = dis._nb_ops  # type: ignore[attr-defined]
_SUBSCRIPT_OPERATOR: Final = next(
    (number for number, (name, _) in enumerate(_OPERATORS) if name == "NB_SUBSCR"), -1
)


def instructions_in(code: CodeType) -> Iterable[dis.Instruction]:
    """Yield the instructions of a code object, by the names that rules have."""
    for read in dis.get_instructions(code):
        name = _name(read)
        yield read if name == read.opname else read._replace(opname=name)


def _name(read: dis.Instruction) -> str:
    if read.opname == "BINARY_OP" and read.arg == _SUBSCRIPT_OPERATOR:
        return SUBSCRIPT
    if read.opname == "CALL_INTRINSIC_1":
        return INTRINSICS.get(read.arg or 0, read.opname)
    return NAMES.get(read.opname, read.opname)
