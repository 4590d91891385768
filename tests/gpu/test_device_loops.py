"""Loops of machine code: which instructions they have, and how long these take."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "examples")]

sass = importlib.import_module("sass")
model = importlib.import_module("pipe_model")
loops = importlib.import_module("device_loops")

# A product whose loop has two instructions of warpgroups, and a copy of 16 bytes for
# each thread; the end of a kernel jumps to itself.
PRODUCT = """
.section .text.kernel,"ax",@progbits
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   STL [R1], R4 ;
.L_x_0:
        /*0020*/                   LDGSTS.E.BYPASS.128 [R10], desc[UR4][R8.64] ;
        /*0030*/              @!P0 IADD3 R8, P1, R8, 0x80, RZ ;
        /*0040*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, !UPT ;
        /*0050*/                   HGMMA.64x128x16.F32.BF16 R24, R4, gdesc[UR8], R24 ;
        /*0060*/              @P0  BRA `(.L_x_0) ;
        /*0070*/                   EXIT ;
.L_x_1:
        /*0080*/                   BRA `(.L_x_1) ;
"""


def device_of(chip: str) -> Any:
    return loops.device(loops.DEVICES[chip])


def test_a_loop_ends_with_its_branch_back() -> None:
    code = sass.read_code(PRODUCT)
    ((first, last),) = code.loops
    assert code.instructions[first].opcode == "LDGSTS.E.BYPASS.128"
    assert code.instructions[last].name == "BRA"
    (inner,) = code.inner_loops()
    assert [one.name for one in inner] == ["LDGSTS", "IADD3", "HGMMA", "HGMMA", "BRA"]


def test_a_loop_around_others_is_no_inner_one() -> None:
    code = sass.read_code("""
.L_x_0:
        /*0000*/                   MOV R1, R2 ;
.L_x_1:
        /*0010*/                   FADD R1, R2, R3 ;
        /*0020*/              @P0  BRA `(.L_x_1) ;
        /*0030*/              @P1  BRA `(.L_x_0) ;
""")
    (inner,) = code.inner_loops()
    assert [one.name for one in inner] == ["FADD", "BRA"]


def test_waits_in_a_loop_are_no_loops_that_work() -> None:
    """One asks again at once, the other far away, from where it jumps back."""
    code = sass.read_code("""
.L_x_0:
        /*0000*/                   UTMALDG.2D [UR4], [UR8] ;
.L_x_1:
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0020*/             @!P0  BRA `(.L_x_1) ;
        /*0030*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0040*/             @!P0  BRA `(.L_x_3) ;
.L_x_2:
        /*0050*/                   HGMMA.64x128x16.F32.BF16 R24, R4, gdesc[UR8], R24 ;
        /*0060*/              @P0  BRA `(.L_x_0) ;
        /*0070*/                   EXIT ;
.L_x_3:
        /*0080*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0090*/             @!P0  BRA `(.L_x_3) ;
        /*00a0*/                   BRA `(.L_x_2) ;
""")
    found = loops.loop_of("product", "sm_90a", "ours", code, copied=1024)
    assert found.counts == {"bulk copies": 1, model.MATRIX: 1, "others": 5}
    flops = 2 * 16 * 128 * 16
    assert found.copied_of_flop == 1e3 * 1024 / flops


def test_what_one_warp_does_is_shared_out() -> None:
    """Others jump over the copies of boxes; what is copied goes to shared memory."""
    code = sass.read_code("""
.L_x_0:
        /*0000*/             @P1   BRA `(.L_x_1) ;
        /*0010*/                   IADD3 R4, R4, R5, RZ ;
        /*0020*/                   UTMALDG.2D [UR4], [UR8] ;
.L_x_1:
        /*0030*/                   HGMMA.64x128x16.F32.BF16 R24, R4, gdesc[UR8], R24 ;
        /*0040*/              @P0  BRA `(.L_x_0) ;
""")
    one = device_of("sm_90a")
    (loop,) = code.inner_loops()
    mix = model.mix_of(loop, one, "sm_90a", warps=8)
    assert mix.busy["issue"] == 3 + 2 / 8
    assert mix.busy["alu"] == 2 / 8
    assert mix.instructions == 5
    found = loops.loop_of("product", "sm_90a", "ours", code, 4096, 8).prediction
    without = loops.loop_of("product", "sm_90a", "ours", code, 0, 8).prediction
    busy = [
        one.shares[model.SHARED] * one.seconds / one.shares[model.MATRIX] / one.seconds
        for one in (found, without)
    ]
    # Both factors of 128 columns are read as well, the rows from registers.
    assert busy[0] / busy[1] == pytest.approx((32 * 32 + 4096) / (32 * 32))


def test_bytes_of_boxes_are_what_mbarriers_expect() -> None:
    text = b"""
        mov.b32         %r6, 49152;
        mbarrier.arrive.expect_tx.shared.b64 %rd18, [__dynamic_shmem__0+65544], %r6;
        mov.b32         %r11, 32768;
        mbarrier.arrive.expect_tx.shared.b64 %rd33, [%rd32], %r11;
"""
    assert loops._expected([b"machine code", text]) == 32768
    assert loops._expected([b"mov.b32 %r6, 49152;"]) == 0


def test_instructions_occupy_their_pipes() -> None:
    one = device_of("sm_90a")
    (loop,) = sass.read_code(PRODUCT).inner_loops()
    mix = model.mix_of(loop, one, "sm_90a")
    # Of a warp: a quarter of 64 rows.
    assert mix.flops == 2 * 2 * 16 * 128 * 16
    assert mix.copied == 32 * 16
    assert mix.counts == {
        model.MATRIX: 2, "alu": 1, "loads and stores": 1, "others": 1,
    }  # fmt: skip
    assert mix.busy["alu"] == 2
    assert mix.busy["issue"] == 5
    # Half of the columns in cycles each, at the stated rate of all multiprocessors.
    assert mix.busy[model.MATRIX] == pytest.approx(2 * 64, rel=0.1)
    # Both read 128 x 16 halves once, one reads its rows as well; the copy writes 512 B.
    assert mix.busy[model.SHARED] == (2 * 32 * 32 + 512 + 512) / 128


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("LDSM.16.M88.4 R4, [R2]", 4.0),
        ("LDS.128 R4, [R2]", 4.0),
        ("LDS R4, [R2]", 1.0),
        ("STS.U16 [R2], R4", 0.5),
        ("SHFL.BFLY PT, R4, R5, 0x1, 0x1f", 1.0),
        ("FADD R1, R2, R3", 0.0),
    ],
)
def test_shared_memory_moves_128_bytes_a_cycle(line: str, expected: float) -> None:
    (one,) = sass.read_code(f"/*0000*/ {line} ;").instructions
    mix = model.mix_of([one], device_of("sm_80"), "sm_80")
    assert mix.busy[model.SHARED] == expected


def test_what_is_busy_longest_is_what_a_loop_takes() -> None:
    found = loops.loop_of("product", "sm_90a", "ours", sass.read_code(PRODUCT))
    assert found.local == 1
    prediction = found.prediction
    assert prediction.shares[prediction.part] == 1.0
    alone = loops.CASES["product"].flops / 989.4e12
    assert prediction.shares[model.MATRIX] * prediction.seconds == pytest.approx(
        alone, rel=1e-6
    )
    # Bytes that no instruction tells of: as many as make the second cache the longest.
    slow = loops.loop_of(
        "product", "sm_90a", "copied", sass.read_code(PRODUCT), copied=1 << 20
    )
    assert slow.prediction.part == model.CACHE
    assert loops.beside_fastest([found, slow]) == {
        "product sm_90a": prediction.seconds / slow.prediction.seconds
    }


def test_a_kernel_without_matrix_instructions_is_refused() -> None:
    with pytest.raises(ValueError, match="no loop has matrix instructions"):
        loops.loop_of("product", "sm_80", "ours", sass.read_code(""))
