"""Owns finding the machine code of single kernels in a disassembly, and its counts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>[^>]+)>:$")
_INSTRUCTION = re.compile(r"^ *[0-9a-f]+:\s+(?P<word>\w+)(?: +(?P<operands>\S.*))?$")
_VECTOR = re.compile(r"%[xyz]mm\d+")
# Before one of these the word of an instruction says that numbers are multiplied and
# added in one.
_FUSED = re.compile(r"v?fn?m(add|sub)\d|vdpbf16ps")

# What only makes the next instruction begin at a multiple of some bytes.
_FILLER = re.compile(r"nop|data16|cs$")
# One number of a vector register, or the low one of them.
_SCALAR = re.compile(
    r"v?\w+s[sd]$|v?mov[dq]$|v?p?(extract|extr|insert|insr)(ps|[bwdq])$"
)


@dataclass(frozen=True)
class MachineCode:
    """The instructions of a kernel.

    Attributes:
        text: An instruction a line, in the syntax of AT&T.
        counts: (what, how many) of the instructions and of some kinds of them. They
            are counted in the code, not in a run.
    """

    text: str
    counts: tuple[tuple[str, int], ...]


def machine_codes(disassembly: str) -> dict[str, MachineCode]:
    """Return the code of each function in what a disassembler printed."""
    functions: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in disassembly.splitlines():
        head = _FUNCTION.match(line)
        if head is not None:
            lines = functions.setdefault(head["name"], [])
        elif _INSTRUCTION.match(line):
            lines.append(line.strip())
    return {
        name: MachineCode("\n".join(lines), tuple(_counts(lines).items()))
        for name, lines in functions.items()
    }


def _counts(lines: list[str]) -> Counter[str]:
    names = ("instructions", "multiply-adds", "vector loads", "vector stores")
    counts = Counter(dict.fromkeys((*names, "branches", "calls"), 0))
    for line in lines:
        found = _INSTRUCTION.match(line)
        if found is None:
            continue
        word, operands = found["word"], found["operands"] or ""
        if _FILLER.match(word):
            continue
        counts["instructions"] += 1
        counts["multiply-adds"] += _FUSED.match(word) is not None
        counts["branches"] += word.startswith("j")
        counts["calls"] += word.startswith("call")
        if _VECTOR.search(operands) and not _SCALAR.match(word):
            # The operand that is written is the last one.
            *read, written = re.split(r",\s*(?![^(]*\))", operands.split("#")[0])
            counts["vector loads"] += any("(" in operand for operand in read)
            counts["vector stores"] += "(" in written
    return counts
