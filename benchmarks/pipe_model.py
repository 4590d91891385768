"""Owns how long a loop keeps each part of a multiprocessor busy, by its instructions.

A multiprocessor has four quarters, each issues an instruction of a warp (32 threads) a
cycle. Instructions occupy a pipe of their quarter as long as it has fewer lanes than a
warp threads; shared memory serves all quarters, 128 bytes a cycle, and so does the way
to the second cache. A loop takes the time of the part that is busy longest: what
overlaps less is not known here, so that two kernels are compared, not times foretold.

Lanes are those of the table "throughput of native arithmetic instructions" of the CUDA
C++ programming guide for compute capability 8.0 and 9.0; rates of matrix instructions
and of memories are those that `devices.toml` states.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sass import BOX_COPY, Instruction

from magweld.targets.device import Device

QUARTERS, WARP, SHARED_BYTES = 4, 32, 128
_HALF_BYTES = 2
ISSUE, MATRIX, SHARED, CACHE = "issue", "matrix", "shared memory", "second cache"

# Lanes of a quarter, by the pipe; those of "fma" differ.
_LANES = {"alu": 16, "integer multiply": 16, "functions": 4}
_FMA_LANES = {"sm_80": 16, "sm_90a": 32}
_PIPES = {
    "fma": "FFMA FMUL FADD HFMA2 HMUL2 HADD2 FFMA2 FMUL2 FADD2",
    "integer multiply": "IMAD IDP",
    "alu": (
        "IADD3 IADD LOP3 SHF ISETP FSETP FMNMX FMNMX3 SEL FSEL PRMT LEA VIADD MOV F2FP "
        "PLOP3 IMNMX VIMNMX VIMNMX3 P2R R2P IABS HMNMX2 HSETP2 FCHK BMSK SGXT VIADDMNMX"
    ),
    "functions": "MUFU F2F F2I I2F FRND POPC FLO BREV I2FP",
}
_PIPE_OF = {name: pipe for pipe, names in _PIPES.items() for name in names.split()}
# What touches shared memory or is copied there, and bytes of a thread where no modifier
# says them; lanes that exchange values pass through the same port.
_THROUGH_SHARED = frozenset({"LDS", "STS", "LDSM", "STSM", "LDGSTS", "SHFL"})
_FROM_MEMORY = frozenset({"LDG", "LDGSTS"})
_ARRIVE = "SYNCS.ARRIVE"
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


@dataclass(frozen=True)
class Mix:
    """What one warp does in an iteration of a loop.

    Attributes:
        counts: Instructions by their pipe; others are only issued. Of several warps
            the one that has most.
        flops: Operations of its matrix instructions.
        busy: Cycles of each pipe of its quarter, and of what all quarters share.
        copied: Bytes that it reads from global memory by loads of its own.
        arrivals: How often a thread tells an mbarrier what bytes are to come.
    """

    counts: dict[str, int]
    flops: int
    busy: dict[str, float]
    copied: int
    arrivals: int = 0

    @property
    def instructions(self) -> int:
        """All that is issued."""
        return sum(self.counts.values())


def mix_of(
    loop: Sequence[Instruction], device: Device, chip: str, warps: int = 1
) -> Mix:
    """Return what a warp does in an iteration of a loop.

    Args:
        loop: Its instructions.
        device: What runs them.
        chip: That of its code.
        warps: Of a block. What one of them does alone is shared out among all.
    """
    counts: Counter[str] = Counter()
    issued = sum(1 / warps if one.alone else 1.0 for one in loop)
    busy: dict[str, float] = {ISSUE: issued}
    flops = copied = 0
    for one in loop:
        done = matrix_flops(one)
        pipe = MATRIX if done else _PIPE_OF.get(one.name, _other(one))
        counts[pipe] += 1
        if done:
            cycles = done / _flops_of_quarter(one, device, chip)
        elif pipe in _LANES or pipe == "fma":
            cycles = WARP / (_LANES.get(pipe) or _FMA_LANES[chip])
        else:
            cycles = 0.0
        flops += done
        cycles = cycles / warps if one.alone else cycles
        busy[pipe] = busy.get(pipe, 0.0) + cycles
        busy[SHARED] = busy.get(SHARED, 0.0) + _shared_cycles(one)
        if one.name in _FROM_MEMORY:
            copied += WARP * _bytes_of(one)
    arrivals = sum(one.opcode.startswith(_ARRIVE) for one in loop)
    return Mix(dict(counts), flops, busy, copied, arrivals)


def _other(one: Instruction) -> str:
    if one.name == BOX_COPY:
        return "bulk copies"
    if one.name in _THROUGH_SHARED or one.name in _FROM_MEMORY:
        return "loads and stores"
    return "others"


def matrix_flops(one: Instruction) -> int:
    """Return the operations of a warp's share of a matrix instruction, 0 for others."""
    if one.name == "HMMA" and one.modifiers[0] == "16816":
        return 2 * 16 * 8 * 16
    if one.name == "HGMMA":
        # Four warps compute it together.
        return 2 * math.prod(_extents(one)) // 4
    return 0


def _extents(one: Instruction) -> tuple[int, int, int]:
    rows, columns, steps = map(int, one.modifiers[0].split("x"))
    return rows, columns, steps


def _flops_of_quarter(one: Instruction, device: Device, chip: str) -> float:
    """Return the operations of a quarter in a cycle, as the device states its rate."""
    family = "wgmma" if one.name == "HGMMA" else "mma"
    rate = max(i.gflops for i in device.instructions if i.name.startswith(f"{family}.m")
               and i.operand in ("f16", "bf16"))  # fmt: skip
    return rate * 1e9 / (device.units * QUARTERS * clock(device, chip))


def clock(device: Device, chip: str) -> float:
    """Return the cycles of a second at which the stated peak is reached."""
    lanes = QUARTERS * _FMA_LANES[chip]
    return device.peak_gflops * 1e9 / (2 * lanes * device.units)


def _shared_cycles(one: Instruction) -> float:
    """Return for how long one warp keeps shared memory busy, without conflicts."""
    if one.name == "HGMMA":
        rows, columns, steps = _extents(one)
        read = columns * steps // 4
        if one.operands[1].startswith("gdesc"):
            read += rows * steps // 4
        return read * _HALF_BYTES / SHARED_BYTES
    if one.name not in _THROUGH_SHARED:
        return 0.0
    return WARP * _bytes_of(one) / SHARED_BYTES


def multiplies(loop: Sequence[Instruction]) -> bool:
    """Tell whether a loop has matrix instructions."""
    return any(map(matrix_flops, loop))


def _bytes_of(one: Instruction) -> int:
    if one.name in ("LDSM", "STSM"):
        # Each lane has a word of each matrix.
        return 4 * int(next((m for m in one.modifiers if m in "124"), "1"))
    return next((_BYTES[m] for m in one.modifiers if m in _BYTES), 4)


@dataclass(frozen=True)
class Prediction:
    """How long the loops of a kernel take.

    Attributes:
        seconds: Of all iterations, by the part that is busy longest.
        part: Which one that is.
        shares: Of each part, of these seconds.
    """

    seconds: float
    part: str
    shares: dict[str, float]


def predicted(
    mix: Mix, flops: float, device: Device, chip: str, copied: float | None = None
) -> Prediction:
    """Return how long a kernel takes whose matrix instructions are those of a loop.

    Args:
        mix: Of an iteration and a warp.
        flops: Of all iterations of all blocks.
        device: What runs them, all multiprocessors alike.
        chip: That of its code.
        copied: Bytes that a warp copies to shared memory in an iteration, where no
            instruction says it.
    """
    iterations = flops / mix.flops / device.units
    cycles = {
        part: taken * (1.0 if part == SHARED else 1 / QUARTERS)
        for part, taken in mix.busy.items()
    }
    cycles[SHARED] = cycles.get(SHARED, 0.0) + (copied or 0.0) / SHARED_BYTES
    of_cache = device.levels[1].bandwidth * 1e9 / (device.units * clock(device, chip))
    cycles[CACHE] = (mix.copied if copied is None else copied) / of_cache
    part = max(cycles, key=lambda name: cycles[name])
    seconds = {
        name: iterations * taken / clock(device, chip) for name, taken in cycles.items()
    }
    longest = seconds[part]
    return Prediction(
        longest, part, {name: taken / longest for name, taken in seconds.items()}
    )
