"""Owns the running of steps that branch and loop on truth values, natively.

Steps, and all that their parts do, become one list of instructions, which native code
carries out on the addresses of frames. It comes back to Python for steps that run
there, and from time to time in loops, so that signals are noticed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from ctypes import addressof, c_int64
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, Protocol

import torch

from magweld.artifact import IfStep, KernelStep, Place, WhileStep
from magweld.runtime.control_code import (
    DONE,
    INSTRUCTION_WORDS,
    Opcode,
    asked_of_python,
)
from magweld.runtime.errors import ProgramError
from magweld.runtime.frame import Frame
from magweld.runtime.layout import Layout, Signature
from magweld.runtime.machine import LoadedKernels
from magweld.runtime.tiling import Action, aligned

_WORD: Final = ctypes.sizeof(c_int64)
# Seconds after which native code that loops comes back: between these.
_SHORT, _LONG = 0.005, 0.05
_MOST_JUMPS: Final = 1 << 30

# Code, place, jumps; see `LoadedKernels.control`.
Run = Callable[[int, int, int], int]

ControlStep = IfStep | WhileStep


class Binder(Protocol):
    """Binds the steps of a frame.

    Attributes:
        frame: The frame.
    """

    @property
    def frame(self) -> Frame:
        """The frame."""

    @property
    def kernels(self) -> LoadedKernels:
        """All kernels of the program."""

    def part(self, number: int, scratch: int) -> Binder:
        """Return the binder of a part on the arena of the frame, from an offset on."""

    def actions(self, numbers: Sequence[int]) -> Iterator[Action]:
        """Yield calls that run some steps."""


def bind_control(binder: Binder, step: ControlStep) -> Action:
    """Return a function that runs a branch or a loop on a truth value.

    Args:
        binder: Of the frame that the step is part of.
        step: The step.
    """
    assembler = _Assembler()
    assembler.control(binder, step)
    return assembler.finish(binder.kernels)


@dataclass
class _Assembler:
    """Collects instructions, each of `Opcode` and three words.

    Attributes:
        words: The instructions.
        actions: What runs in Python, by the place of its instruction.
        frames: Of parts.
        kept: Memory that instructions refer to.
    """

    words: list[int] = field(default_factory=list)
    actions: dict[int, tuple[Action, ...]] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    kept: list[object] = field(default_factory=list)

    @property
    def place(self) -> int:
        """Where the next instruction goes."""
        return len(self.words) // INSTRUCTION_WORDS

    def emit(self, opcode: int, *operands: int) -> int:
        """Append an instruction; return its place."""
        place = self.place
        padding = [0] * (INSTRUCTION_WORDS - 1 - len(operands))
        self.words += [opcode, *operands, *padding]
        return place

    def aim(self, place: int) -> None:
        """Let the branch or jump at a place lead to the next instruction."""
        self.words[place * INSTRUCTION_WORDS + 1] = self.place

    def finish(self, kernels: LoadedKernels) -> Action:
        """Return what carries out the instructions."""
        self.emit(Opcode.HALT)
        code = (c_int64 * len(self.words))(*self.words)
        self.kept.append(code)
        return _Runner(kernels.control, addressof(code), self)

    def control(self, binder: Binder, step: ControlStep) -> None:
        """Append what runs a step."""
        if isinstance(step, IfStep):
            self._if(binder, step)
        else:
            self._while(binder, step)

    def _if(self, binder: Binder, step: IfStep) -> None:
        test = _entry(binder.frame, step.reads[0])
        other = self.emit(Opcode.UNLESS, 0, test)
        self._arm(binder, step, step.on_true)
        end = self.emit(Opcode.JUMP, 0)
        self.aim(other)
        self._arm(binder, step, step.on_false)
        self.aim(end)

    def _arm(self, binder: Binder, step: IfStep, part: int) -> None:
        arm = self._part(binder, part, step.scratch)
        self._hand_over(binder.frame, step.reads[1:], arm.frame)
        targets = [_entry(binder.frame, value_id) for value_id in step.writes]
        late = self._set_results(arm.frame, targets)
        self._body(arm)
        self._copy(late)

    def _while(self, binder: Binder, step: WhileStep) -> None:
        frame = binder.frame
        iteration = self._part(binder, step.part, step.scratch)
        inner = iteration.frame
        layout = inner.layout
        count = len(step.writes)
        offset = step.scratch + aligned(layout.program.arena_bytes)
        signatures = [layout.signatures[i] for i in layout.program.results]
        # What is carried now, where it goes next, the next truth value: addresses.
        words = (c_int64 * (2 * count + 1))()
        self.kept.append(words)
        now = [addressof(words) + _WORD * number for number in range(count)]
        then = [addressof(words) + _WORD * (count + n) for n in range(count)]
        test = addressof(words) + _WORD * 2 * count
        buffers = []
        for signature in signatures:
            buffers.append(frame.arena.view(offset, signature).data_ptr())
            offset += aligned(signature.nbytes)
        words[2 * count] = buffers[count]
        spare = (c_int64 * max(count, 1))(*buffers[:count])
        self.kept.append(spare)
        # The first iteration reads the operands and writes the result.
        for number in range(count):
            source = _entry(frame, step.reads[1 + number])
            self.emit(Opcode.SET, now[number], source)
            self.emit(Opcode.SET, then[number], _entry(frame, step.writes[number]))
        self._hand_over(frame, step.reads[1 + count :], inner, count)
        first = self.emit(Opcode.UNLESS, 0, _entry(frame, step.reads[0]))
        begin = self.place
        for number in range(count):
            self._set(inner, layout.inputs[number], now[number])
        late = self._set_results(inner, [*then, test])
        self._body(iteration)
        self._copy(late)
        # What was written is carried on, and the other buffer is written next.
        for number in range(count):
            target = _entry(frame, step.writes[number])
            other = addressof(spare) + _WORD * number
            self.emit(Opcode.SET, now[number], then[number])
            self.emit(Opcode.OTHER, then[number], target, other)
        last = self.emit(Opcode.UNLESS, 0, test)
        self.emit(Opcode.BACK, begin)
        self.aim(first)
        self.aim(last)
        for number in range(count):
            target = _entry(frame, step.writes[number])
            nbytes = signatures[number].nbytes
            self.emit(Opcode.COPY, target, now[number], nbytes)

    def _part(self, binder: Binder, number: int, scratch: int) -> Binder:
        part = binder.part(number, scratch)
        self.frames.append(part.frame)
        return part

    def _hand_over(
        self, frame: Frame, reads: Sequence[int], inner: Frame, first: int = 0
    ) -> None:
        """Let arguments of a part, from a number on, be values of the frame."""
        arguments = inner.layout.inputs[first:]
        for value_id, source in zip(arguments, reads, strict=True):
            self._set(inner, value_id, _entry(frame, source))

    def _set(self, inner: Frame, root: int, source: int) -> None:
        for value_id in (root, *inner.layout.aliases[root]):
            self.emit(Opcode.SET, _entry(inner, value_id), source)

    def _set_results(
        self, inner: Frame, targets: Sequence[int]
    ) -> list[tuple[int, int, int]]:
        """Let a part write its results to where addresses lead.

        Returns:
            What has to be copied behind it, as it is there already or is written
            twice: where the target's address is, where the source's is, bytes.
        """
        layout = inner.layout
        late = []
        written: set[int] = set()
        for value_id, target in zip(layout.program.results, targets, strict=True):
            root = layout.roots[value_id]
            place = layout.root_value(value_id).place
            if place is Place.OUTPUT and root not in written:
                written.add(root)
                self._set(inner, root, target)
                continue
            nbytes = layout.signatures[value_id].nbytes
            late.append((target, _entry(inner, value_id), nbytes))
        return late

    def _copy(self, late: Sequence[tuple[int, int, int]]) -> None:
        for target, source, nbytes in late:
            self.emit(Opcode.COPY, target, source, nbytes)

    def _body(self, binder: Binder) -> None:
        frame = binder.frame
        for number, step in enumerate(frame.layout.program.steps):
            match step:
                case KernelStep():
                    launch = binder.kernels.address_of(step.symbol)
                    self.emit(Opcode.LAUNCH, launch, frame.table_address)
                case IfStep() | WhileStep():
                    self.control(binder, step)
                case _:
                    bring = _Tensors(frame, (*step.reads, *step.writes))
                    place = self.emit(Opcode.PYTHON)
                    self.actions[place] = (bring, *binder.actions([number]))


def _entry(frame: Frame, value_id: int) -> int:
    """Return where the address of a value is."""
    return frame.table_address + _WORD * value_id


class _Tensors:
    """Makes tensors of the addresses that native code has set."""

    def __init__(self, frame: Frame, value_ids: Sequence[int]) -> None:
        layout = frame.layout
        self._frame = frame
        roots = dict.fromkeys(layout.roots[value_id] for value_id in value_ids)
        self._roots = [
            (root, layout.signatures[root])
            for root in roots
            if layout.program.values[root].place in (Place.INPUT, Place.OUTPUT)
        ]

    def __call__(self) -> None:
        for root, signature in self._roots:
            self._frame.place(root, _tensor_at(self._frame.table[root], signature))


def _tensor_at(address: int, signature: Signature) -> torch.Tensor:
    if not signature.nbytes:
        return torch.empty(signature.shape, dtype=signature.dtype)
    memory = (ctypes.c_char * signature.nbytes).from_address(address)
    flat = torch.frombuffer(memory, dtype=signature.dtype)
    return flat.view(signature.shape)


class _Runner:
    """Carries out instructions, and what they ask of Python."""

    def __init__(self, run: Run, code: int, assembled: _Assembler) -> None:
        self._run = run
        self._code = code
        self._assembled = assembled
        self._jumps = 1

    def __call__(self) -> None:
        try:
            self._carry_out()
        finally:
            for frame in self._assembled.frames:
                frame.end()

    def _carry_out(self) -> None:
        place = 0
        began = perf_counter()
        while True:
            place = self._run(self._code, place, self._jumps)
            if place == DONE:
                return
            if place >= 0:
                # Here Python notices signals; native code ran for a while.
                now = perf_counter()
                self._pace(now - began)
                began = now
                continue
            place = asked_of_python(place)
            for action in self._assembled.actions[place]:
                action()
            place += 1

    def _pace(self, seconds: float) -> None:
        if seconds < _SHORT:
            self._jumps = min(4 * self._jumps, _MOST_JUMPS)
        elif seconds > _LONG:
            self._jumps = max(self._jumps // 4, 1)


def control_scratch(step: ControlStep, parts: Sequence[Layout]) -> int:
    """Return the bytes of the arena that a step needs from `scratch` on."""
    arenas = (parts[number].program.arena_bytes for number in step.parts)
    needed = max(map(aligned, arenas))
    if isinstance(step, IfStep):
        return needed
    part = parts[step.part]
    results = (part.signatures[value_id] for value_id in part.program.results)
    return needed + sum(aligned(signature.nbytes) for signature in results)


def check_control(layout: Layout, step: ControlStep, parts: Sequence[Layout]) -> None:
    """Check that the parts of a step take what it reads and make what it writes.

    Raises:
        ProgramError: With the id `bad-control`.
    """
    for problem in _problems(layout, step, parts):
        raise ProgramError("bad-control", f"the {_name(step)} {problem}")


def _name(step: ControlStep) -> str:
    return "branch" if isinstance(step, IfStep) else "loop"


def _problems(
    layout: Layout, step: ControlStep, parts: Sequence[Layout]
) -> Iterator[str]:
    unknown = [number for number in step.parts if not 0 <= number < len(parts)]
    if unknown or not step.reads:
        yield f"is of parts {unknown} that are not in front of it"
        return
    test = layout.signatures[step.reads[0]]
    if test.dtype is not torch.bool or test.nbytes != 1:
        yield f"tests {test}"
    if len({layout.roots[value_id] for value_id in step.writes}) != len(step.writes):
        yield "writes one value twice"
    reads = [layout.signatures[value_id] for value_id in step.reads[1:]]
    writes = [layout.signatures[value_id] for value_id in step.writes]
    if isinstance(step, WhileStep):
        if reads[: len(writes)] != writes:
            yield f"carries {reads[: len(writes)]} and writes {writes}"
        writes = [*writes, Signature(torch.Size(()), torch.bool)]
    for number in step.parts:
        yield from _part_problems(parts[number], number, reads, writes)


def _part_problems(
    part: Layout, number: int, reads: list[Signature], writes: list[Signature]
) -> Iterator[str]:
    taken = [part.signatures[value_id] for value_id in part.inputs]
    made = [part.signatures[value_id] for value_id in part.program.results]
    if taken != reads:
        yield f"reads {reads}, part {number} takes {taken}"
    if made != writes:
        yield f"writes {writes}, part {number} makes {made}"
