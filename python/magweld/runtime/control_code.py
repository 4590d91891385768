"""Owns the instructions of native control flow, as the native function reads them.

They are apart from the code that carries them out: programs are bound where LLVM is not
installed as well, and such programs have none.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

# What the native function returns at the end.
DONE: Final = -1


class Opcode(IntEnum):
    """What an instruction of the native function does with the three words behind it.

    `*x` is the word at address x. `LAUNCH` calls launch function a with table b; `SET`
    makes `*a` of `*b`; `OTHER` makes `*a` of `*c` if it is `*b`, else of `*b`; `COPY`
    copies c bytes from address `*b` to address `*a`; `UNLESS` goes on at instruction a
    if the byte at address `*b` is zero; `JUMP` goes on at a; `BACK` as well, but the
    caller decides how often. `HALT` is the end, `PYTHON` returns to the caller.
    """

    HALT = 0
    LAUNCH = 1
    SET = 2
    OTHER = 3
    COPY = 4
    UNLESS = 5
    JUMP = 6
    BACK = 7
    PYTHON = 8


# Words of an instruction.
INSTRUCTION_WORDS: Final = 4


def asked_of_python(answer: int) -> int:
    """Return the place of the `PYTHON` instruction for which there was an answer."""
    return DONE - 1 - answer
