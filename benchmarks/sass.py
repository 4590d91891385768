"""Owns machine code of NVIDIA's GPUs as text: instructions of a kernel, its loops."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_INSTRUCTION = re.compile(
    r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)(?P<operands>[^;]*);"
)
# The copy of a box of a tensor.
BOX_COPY = "UTMALDG"
# What all threads of a block run.
_OF_ALL = frozenset({"BAR", "HGMMA"})
_LABEL = re.compile(r"^\s*(?P<label>\.L_\w+):")
_TARGET = re.compile(r"`\((?P<label>\.L_\w+)\)")


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        opcode: With its modifiers, as `LDS.128`.
        operands: As text.
        alone: Whether it is one of those that one thread of a block runs: others jump
            over the copies of boxes.
    """

    opcode: str
    operands: tuple[str, ...]
    alone: bool = False

    @property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """What stands behind it."""
        return tuple(self.opcode.split(".")[1:])


@dataclass(frozen=True)
class Code:
    """The instructions of a kernel.

    Attributes:
        instructions: In their order in memory.
        loops: First and last instruction of each loop, the last is its branch back.
    """

    instructions: tuple[Instruction, ...]
    loops: tuple[tuple[int, int], ...]

    def inner_loops(
        self, works: Callable[[Sequence[Instruction]], bool] = bool
    ) -> Iterator[Sequence[Instruction]]:
        """Yield the instructions of each loop that works and has no such loop inside.

        Args:
            works: Tells so of the instructions of a loop. What waits for an mbarrier
                asks in a loop of its own, inside of another one.
        """
        loops = [
            (first, last)
            for first, last in self.loops
            if works(self.instructions[first : last + 1])
        ]
        for first, last in loops:
            inside = (
                first <= other and end <= last
                for other, end in loops
                if (other, end) != (first, last)
            )
            if not any(inside):
                yield self.instructions[first : last + 1]


def read_code(text: str) -> Code:
    """Return the code of what nvdisasm prints of one kernel."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    branches: list[tuple[int, str]] = []
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label is not None:
            labels[label["label"]] = len(instructions)
        found = _INSTRUCTION.search(line)
        if found is None:
            continue
        operands = tuple(one.strip() for one in found["operands"].split(","))
        target = _TARGET.search(line)
        if target is not None:
            branches.append((len(instructions), target["label"]))
        instructions.append(Instruction(found["opcode"], operands))
    loops = (
        (labels[label], number)
        for number, label in branches
        if label in labels and labels[label] <= number
    )
    for number, label in branches:
        behind = instructions[number + 1 : labels.get(label, 0)]
        names = {one.name for one in behind}
        if BOX_COPY in names and not names & _OF_ALL:
            skipped = [replace(one, alone=True) for one in behind]
            instructions[number + 1 : labels[label]] = skipped
    # What stands behind the end of a kernel jumps to itself, or back to where it came
    # from: a wait that is asked again.
    found = (
        (first, end)
        for first, end in loops
        if first < end
        and not any(one.name == "EXIT" for one in instructions[first : end + 1])
    )
    return Code(tuple(instructions), tuple(found))


def disassembled(cubin: bytes, tool: str) -> Code:
    """Return the code of a cubin that has one kernel.

    Args:
        cubin: Machine code.
        tool: Command of NVIDIA's disassembler.
    """
    with tempfile.TemporaryDirectory(prefix="magweld-sass-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        done = subprocess.run(
            [tool, "-c", str(path)], capture_output=True, text=True, check=True
        )
    return read_code(done.stdout)


def find_disassembler() -> str | None:
    """Return the command of the disassembler, None if it is not installed."""
    return shutil.which("nvdisasm")
