"""Owns what the emulator of AMD's machine code lacks or has wrong, as patches."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any


def mend() -> None:
    """Mend the emulator, which can be imported; a second time changes nothing."""
    _mend_signs()
    _mend_carries()
    _mend_swizzles()
    _mend_halves()
    _mend_accumulators()
    _mend_numbers()


def _mend_signs() -> None:
    """Let 24-bit factors be negative, which the emulator forgets.

    What is above these bits is no part of the factors.
    """
    module = "tinygrad.runtime.autogen.amd.cdna.str_pcode"
    meanings = importlib.import_module(module).PCODE
    for instruction, meaning in meanings.items():
        if ".i24" in meaning:
            whole = re.sub(r"(S\d)\.i24", r"((\1.i32 << 8U) >> 8U)", meaning)
            meanings[instruction] = whole


def _mend_carries() -> None:
    """Keep the carries of all lanes of instructions on parts of registers (SDWA).

    The emulator writes them lane by lane and keeps those of the last lanes alone. They
    are computed at once here, and before the results, which may replace operands.
    """
    emulator = importlib.import_module("test.mockgpu.amd.emu")
    original, carries = emulator._compile_sdwa, []

    def note(ctx: Any, reg: Any, lane: Any, value: Any, mask: Any) -> list[Any]:
        carries.append((reg, lane, value, mask))
        return []

    def compile_instruction(inst: Any, ctx: Any) -> Any:
        carries.clear()
        rest = original(inst, ctx)
        stores = []
        for reg, lane, value, mask in carries:

            def bit(number: Any, lane: Any = lane, value: Any = value) -> Any:
                return emulator._to_u32(value.substitute({lane: number}))

            stores += ctx.wmask(reg, ctx.unroll_lanes(bit, mask))
        return emulator.UOp.sink(*stores, *rest.src)

    if not hasattr(original, "is_mended"):
        compile_instruction.is_mended = True  # type: ignore[attr-defined]
        emulator._Ctx.wmask_lane_bit = note
        emulator._compile_sdwa = compile_instruction
        for kind, handler in emulator._INST_HANDLERS.items():
            if handler is original:
                emulator._INST_HANDLERS[kind] = compile_instruction


# CDNA 3 ISA, "DS_SWIZZLE_B32", mode of a bit mask; the emulator has no meaning for it.
_SWIZZLE = """declare tmp : 32'B[64];
for i in 0 : 63 do
tmp[i] = 0x0
endfor;
for i in 0 : 63 do
kept = (i & OFFSET.u32 & 31U) | ((OFFSET.u32 >> 5U) & 31U);
src_lane = (i & 32U) | (kept ^ ((OFFSET.u32 >> 10U) & 31U));
if EXEC[src_lane].u1 then
tmp[i] = VGPR[src_lane][ADDR]
endif
endfor;
for i in 0 : 63 do
if EXEC[i].u1 then
VGPR[i][VDST] = tmp[i]
endif
endfor"""


def _mend_swizzles() -> None:
    """Let lanes exchange values by a mask of bits: compiled as the other exchanges are.

    Raises:
        NotImplementedError: When a swizzle has another mode.
    """
    emulator = importlib.import_module("test.mockgpu.amd.emu")
    meanings = importlib.import_module("tinygrad.runtime.autogen.amd.cdna.str_pcode")
    operations = importlib.import_module("tinygrad.runtime.autogen.amd.cdna.enum").DSOp
    name_of, swizzle = emulator._op_name, operations.DS_SWIZZLE_B32

    def name(inst: Any) -> str:
        found: str = name_of(inst)
        if found != "DS_SWIZZLE_B32":
            return found
        if inst.offset1 & 0x80:
            raise NotImplementedError("a swizzle that is no mask of bits")
        return "DS_PERMUTE_BY_MASK"

    if meanings.PCODE[swizzle] != _SWIZZLE:
        meanings.PCODE[swizzle] = _SWIZZLE
        emulator._op_name = name


def _mend_halves() -> None:
    """Let the registers above 127 be registers in instructions on 16 bits.

    On another family of processors, these numbers are the upper halves of the others.
    """
    emulator = importlib.import_module("test.mockgpu.amd.emu")
    constant = emulator._c

    def far(value: int, *rest: Any) -> Any:
        return constant(1 << 20 if value in (128, 384) else value, *rest)

    def mended(original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_instruction(inst: Any, ctx: Any) -> Any:
            has_halves = 16 in inst.canonical_op_bits.values()
            vars(emulator)["_c"] = far if has_halves else constant
            try:
                return original(inst, ctx)
            finally:
                vars(emulator)["_c"] = constant

        return compile_instruction

    _replace_handlers(emulator, ("VOP1", "VOP2", "VOPC"), "16 bits", mended)


def _mend_accumulators() -> None:
    """Read from accumulators what instructions say is there.

    The emulator takes data that go to LDS and factors of matrix instructions from the
    other registers of the same numbers.
    """
    emulator = importlib.import_module("test.mockgpu.amd.emu")
    in_accumulators: list[Any] = []
    read = emulator._Ctx.rvgpr_dyn

    def read_register(ctx: Any, reg: Any, lane: Any, valid: Any = None) -> Any:
        parts = reg.toposort() if in_accumulators else ()
        if any(field in parts for field in in_accumulators):
            return ctx.raccvgpr_dyn(reg, lane, valid)
        return read(ctx, reg, lane, valid)

    def mended(original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_instruction(inst: Any, ctx: Any) -> Any:
            names = _in_accumulators(inst)
            in_accumulators[:] = [
                ctx.inst_field(getattr(type(inst), name)) for name in names
            ]
            try:
                return original(inst, ctx)
            finally:
                in_accumulators.clear()

        return compile_instruction

    if _replace_handlers(emulator, ("DS", "VOP3P"), "accumulators", mended):
        emulator._Ctx.rvgpr_dyn = read_register


# The first halves of instructions of gfx90a, and what they are on its successors:
# products of bf16 ("CDNA 2 ISA" and "CDNA 3 ISA", VOP3P).
_RENUMBERED = {0xD3E6: 0xD3E0, 0xD3E7: 0xD3E1}


def _mend_numbers() -> None:
    """Know the matrix instructions of gfx90a that have other numbers there."""
    emulator = importlib.import_module("test.mockgpu.amd.emu")
    decode = emulator.decode_inst

    def decode_instruction(data: bytes, arch: str) -> Any:
        first = int.from_bytes(data[2:4], "little")
        known = _RENUMBERED.get(first, first) if arch == "cdna" else first
        return decode(data[:2] + known.to_bytes(2, "little") + data[4:], arch)

    if "numbers" not in emulator._mended:
        emulator._mended.add("numbers")
        emulator.decode_inst = decode_instruction


def _in_accumulators(inst: Any) -> list[str]:
    """Return which operands are accumulators of those that the emulator forgets."""
    if hasattr(type(inst), "data0"):
        return ["data0", "data1"] if inst.acc else []
    flags = inst.acc if hasattr(type(inst), "acc_cd") else 0
    return [name for bit, name in enumerate(("src0", "src1")) if flags >> bit & 1]


def _replace_handlers(
    emulator: Any,
    families: tuple[str, ...],
    what: str,
    mended: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> bool:
    """Replace what compiles instructions of CDNA, unless it was; return whether so."""
    own = importlib.import_module("tinygrad.runtime.autogen.amd.cdna.ins").__name__
    handlers = emulator._INST_HANDLERS
    if what in emulator.__dict__.setdefault("_mended", set()):
        return False
    emulator._mended.add(what)
    for kind, handler in handlers.items():
        if kind.__module__ == own and kind.__name__.startswith(families):
            handlers[kind] = mended(handler)
    return True
