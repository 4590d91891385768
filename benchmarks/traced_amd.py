"""Memory instructions of the AMD emulator, noted with the addresses of their lanes.

The emulator decodes an instruction and then runs it on the registers of a wavefront.
While a launch is traced, what it decodes notes the addresses first.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from memory_counters import Access, MemoryCounters

LANES = 64
SECTOR = 64  # a request to the second cache
_VECTORS, _SCALARS = 256, 260
_EXEC, _OFF, _VECTOR = 126, 124, 256
_GLOBAL = re.compile(r"(?:GLOBAL|FLAT)_(LOAD|STORE)_(\w+)")
_SHARED = re.compile(r"DS_(READ|WRITE)(2|2ST64)?_[BUI](\d+)(?:_D16(?:_HI)?)?")
_SCALAR = re.compile(r"S_LOAD_DWORD(?:X(\d+))?")
_NO_MEMORY = ("DS_PERMUTE", "DS_BPERMUTE", "DS_SWIZZLE")

Note = Callable[["Registers"], Iterator[Access]]


class Registers:
    """The registers of a wavefront, at two addresses of this process."""

    def __init__(self, scalars: int, vectors: int) -> None:
        words = ctypes.c_uint32
        self.scalars = np.frombuffer((words * _SCALARS).from_address(scalars), "u4")
        flat = (words * (_VECTORS * LANES)).from_address(vectors)
        self.vectors = np.frombuffer(flat, "u4").reshape(_VECTORS, LANES)

    def lanes(self) -> np.ndarray:
        """Return the numbers of the active lanes."""
        mask = self.pair(_EXEC)
        return np.flatnonzero([mask >> lane & 1 for lane in range(LANES)])

    def pair(self, number: int) -> int:
        """Return the 64 bits of two scalar registers."""
        low, high = self.scalars[number : number + 2]
        return int(low) | int(high) << 32


@contextmanager
def traced(counters: MemoryCounters, parameters: range) -> Iterator[None]:
    """Note the memory instructions of what is launched.

    Args:
        counters: Where they are noted.
        parameters: Sizes of the parameters of the launch: reads of them do not count.
    """
    emulator = importlib.import_module("test.mockgpu.amd.emu")
    decode, first_wave = emulator._decode_at, emulator._init_wave
    start: list[range] = [range(0)]

    def decode_and_note(pc: int, arch: str) -> Any:
        (program, runtime), instruction = decode(pc, arch)
        note = note_of(instruction)
        if note is None:
            return (program, runtime), instruction
        run = runtime.fxn

        def run_noted(scalars: Any, vectors: Any, *rest: Any) -> None:
            for access in note(Registers(scalars.value, vectors.value)):
                if int(access.first[0]) not in start[0]:
                    counters.note(access)
            run(*rest)

        kept = SimpleNamespace(globals=[0, 1, *program.arg.globals])
        return (SimpleNamespace(arg=kept), SimpleNamespace(fxn=run_noted)), instruction

    def begin(lib: int, wave_start: int, *rest: Any) -> Any:
        if wave_start == 0:
            counters.end_block()
        address = rest[4]
        start[0] = range(address, address + len(parameters))
        return first_wave(lib, wave_start, *rest)

    emulator._decode_at, emulator._init_wave = decode_and_note, begin
    try:
        yield
        counters.end_block()
    finally:
        emulator._decode_at, emulator._init_wave = decode, first_wave


def note_of(instruction: Any) -> Note | None:
    """Return what notes an instruction, None if it accesses no memory that counts.

    Raises:
        NotImplementedError: It accesses memory in a way that is not known here.
    """
    name = instruction.op.name if hasattr(instruction, "op") else ""
    for pattern, make in ((_GLOBAL, _global), (_SHARED, _shared), (_SCALAR, _scalar)):
        found = pattern.fullmatch(name)
        if found:
            return make(instruction, found)
    unknown = name.startswith(("GLOBAL_", "FLAT_", "BUFFER_", "DS_"))
    if unknown and not name.startswith((*_NO_MEMORY, "BUFFER_WBL2", "BUFFER_INV")):
        raise NotImplementedError(f"memory instruction '{name}'")
    return None


def _global(instruction: Any, found: re.Match[str]) -> Note:
    is_store, width = found[1] == "STORE", _bytes_of(found[2])
    register = instruction.addr.offset - _VECTOR
    base = instruction.saddr.offset
    offset = (instruction.offset ^ 0x1000) - 0x1000  # 13 bits with a sign

    def note(registers: Registers) -> Iterator[Access]:
        lanes = registers.lanes()
        at = registers.vectors[register, lanes].astype(np.int64)
        if base < _OFF:
            at = at + registers.pair(base)
        else:
            high = registers.vectors[register + 1, lanes].astype(np.int64)
            at = at | high << 32
        if len(lanes):
            yield Access(is_store, False, lanes, at + offset, width)

    return note


def _bytes_of(kind: str) -> int:
    if kind.startswith("DWORD"):
        return 4 * int(kind.removeprefix("DWORD").removeprefix("X") or 1)
    return 1 if "BYTE" in kind else 2


def _shared(instruction: Any, found: re.Match[str]) -> Note:
    is_store, width = found[1] == "WRITE", int(found[3]) // 8
    register = instruction.addr.offset - _VECTOR
    low, high = instruction.offset0, instruction.offset1
    if found[2] is None:
        offsets = [low | high << 8]
    else:
        stride = width * (64 if found[2] == "2ST64" else 1)
        offsets = [low * stride, high * stride]

    def note(registers: Registers) -> Iterator[Access]:
        lanes = registers.lanes()
        at = registers.vectors[register, lanes].astype(np.int64)
        for offset in offsets if len(lanes) else []:
            yield Access(is_store, True, lanes, at + offset, width)

    return note


def _scalar(instruction: Any, found: re.Match[str]) -> Note:
    width = 4 * int(found[1] or 1)
    base = instruction.sbase.offset
    offset = (instruction.offset ^ 0x100000) - 0x100000  # 21 bits with a sign
    more = instruction.soffset.offset if instruction.soffset_en else None

    def note(registers: Registers) -> Iterator[Access]:
        at = registers.pair(base) + offset
        at += 0 if more is None else int(registers.scalars[more])
        yield Access(False, False, np.array([0]), np.array([at]), width)

    return note
