"""Owns what the emulator of AMD's machine code lacks or has wrong, as patches."""

from __future__ import annotations

import importlib
from typing import Any


def mend() -> None:
    """Mend the emulator, which can be imported; a second time changes nothing."""
    _mend_signs()
    _mend_carries()
    _mend_swizzles()


def _mend_signs() -> None:
    """Let 24-bit factors be negative, which the emulator forgets.

    The compiler takes these instructions only where 24 bits hold the numbers, so that
    the 32 bits that they are in hold the same ones.
    """
    module = "tinygrad.runtime.autogen.amd.cdna.str_pcode"
    meanings = importlib.import_module(module).PCODE
    for instruction, meaning in meanings.items():
        if ".i24" in meaning:
            meanings[instruction] = meaning.replace(".i24", ".i32")


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
