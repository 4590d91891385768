"""Instructions that the emulator of AMD's machine code has wrong, with its mends.

Two numbers of 64 bits come in v[4:5] and v[6:7], the result leaves in v[2:3].
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from magweld.codegen.device_tools import find_lld, run_tool

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "examples")]

gpu = importlib.import_module("emulated_gpu")
pytestmark = [
    pytest.mark.skipif(bool(gpu.missing()), reason=gpu.missing()),
    pytest.mark.skipif(find_lld() is None, reason="no ld.lld"),
]
KERNEL = """
.text
.globl k
.p2align 8
.type k,@function
k:
 s_load_dwordx4 s[8:11], s[0:1], 0x0
 s_load_dwordx2 s[12:13], s[0:1], 0x10
 v_lshlrev_b32 v0, 3, v0
 s_waitcnt lgkmcnt(0)
 global_load_dwordx2 v[4:5], v0, s[8:9]
 global_load_dwordx2 v[6:7], v0, s[10:11]
 s_waitcnt vmcnt(0)
 {0}
 global_store_dwordx2 v0, v[2:3], s[12:13]
 s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
 .amdhsa_user_sgpr_kernarg_segment_ptr 1
 .amdhsa_kernarg_size 24
 .amdhsa_next_free_vgpr 512
 .amdhsa_next_free_sgpr 32
 .amdhsa_accum_offset 256
.end_amdhsa_kernel
"""
_ASSEMBLE = "clang --target=amdgcn-amd-amdhsa -mcpu=gfx90a -x assembler -c - -o -"
LOW, HALF, THIRD = (np.uint64((1 << bits) - 1) for bits in (32, 16, 24))


def execute(*instructions: str, inputs: Any) -> np.ndarray:
    """Return what instructions make of two numbers in each lane of a wave."""
    text = KERNEL.format("\n ".join(instructions)).encode()
    assembled = subprocess.run(
        _ASSEMBLE.split(), input=text, capture_output=True, check=True
    )
    linker = [*(find_lld() or ()), "-shared", "{input}", "-o", "{output}"]
    driver = gpu.EmulatedDriver()
    code = driver.load(run_tool(linker, assembled.stdout))
    arrays = [*inputs, np.zeros(64, np.uint64)]
    pointers = [array.ctypes.data for array in arrays]
    driver._emulate.launch(code, "k", (1, 1, 1), (64, 1, 1), 0, pointers)
    return arrays[-1]


@pytest.fixture
def inputs() -> list[np.ndarray]:
    numbers = np.random.default_rng(0)
    return [numbers.integers(0, 1 << 64, 64, dtype=np.uint64) for _ in range(2)]


def test_registers_above_127_are_whole_in_instructions_on_16_bits(inputs: Any) -> None:
    first, second = inputs
    found = execute(
        "v_mov_b32 v200, v4",
        "v_mov_b32 v201, v6",
        "v_mul_lo_u16 v202, v200, v201",
        "v_mov_b32 v2, v202",
        "v_cmp_gt_u16 vcc, v200, v201",
        "v_cndmask_b32 v3, 0, 1, vcc",
        inputs=inputs,
    )
    np.testing.assert_array_equal(found & LOW, first * second & HALF)
    is_greater = (first & HALF) > (second & HALF)
    np.testing.assert_array_equal(found >> np.uint64(32), is_greater)


def test_numbers_of_64_bits_are_compared_with_constants(inputs: Any) -> None:
    first = inputs[0] & np.uint64(63)
    found = execute(
        "v_mov_b32 v3, 0",
        "v_cmp_gt_u64 vcc, 32, v[4:5]",
        "v_cndmask_b32 v2, 0, 1, vcc",
        inputs=[first, inputs[1]],
    )
    np.testing.assert_array_equal(found, first < 32)


def test_factors_of_24_bits_are_signed(inputs: Any) -> None:
    found = execute(
        "v_mul_i32_i24 v2, -4, v4", "v_mul_hi_i32_i24 v3, -4, v4", inputs=inputs
    )
    factor = (inputs[0] & THIRD).astype(np.int64) << 40 >> 40
    np.testing.assert_array_equal(found.view(np.int64), -4 * factor)


@pytest.mark.parametrize("to", ["a", "v"])
@pytest.mark.parametrize("by", ["a", "v"])
def test_accumulators_go_to_shared_memory_and_back(
    by: str, to: str, inputs: Any
) -> None:
    found = execute(
        *(f"v_mov_b32 v{n + 8}, 0" for n in (0, 1)),
        *(f"v_accvgpr_write_b32 a{n + 8}, v{n + 4}" for n in (0, 1) if by == "a"),
        *(f"v_mov_b32 v{n + 8}, v{n + 4}" for n in (0, 1) if by == "v"),
        f"ds_write_b64 v0, {by}[8:9] offset:64",
        "s_waitcnt lgkmcnt(0)",
        f"ds_read_b64 {to}[2:3], v0 offset:64",
        "s_waitcnt lgkmcnt(0)",
        *(f"v_accvgpr_read_b32 v{n}, a{n}" for n in (2, 3) if to == "a"),
        inputs=inputs,
    )
    np.testing.assert_array_equal(found, inputs[0])


@pytest.mark.parametrize("left", ["a", "v"])
@pytest.mark.parametrize("right", ["a", "v"])
def test_factors_of_matrices_are_accumulators(left: str, right: str) -> None:
    """Rows of 1 and columns of 2: each element of the product is 16 times 2."""
    one, two = (np.full(64, bits, np.uint64) for bits in (0x3C003C003C003C00, 0))
    two += np.uint64(0x4000400040004000)
    found = execute(
        *(f"v_accvgpr_write_b32 a{n}, v{n}" for n in (4, 5) if left == "a"),
        *(f"v_accvgpr_write_b32 a{n}, v{n}" for n in (6, 7) if right == "a"),
        *(f"v_mov_b32 v{n}, 0" for n in (4, 5) if left == "a"),
        *(f"v_mov_b32 v{n}, 0" for n in (6, 7) if right == "a"),
        f"v_mfma_f32_16x16x16f16 v[12:15], {left}[4:5], {right}[6:7], 0",
        *("s_nop 15",) * 2,
        "v_mov_b32 v2, v12",
        "v_mov_b32 v3, v15",
        inputs=[one, two],
    )
    np.testing.assert_array_equal(found.view(np.float32), 32)


def test_products_of_bf16_have_other_numbers_on_gfx90a() -> None:
    one, two = (np.full(64, bits, np.uint64) for bits in (0x3F803F803F803F80, 0))
    two += np.uint64(0x4000400040004000)
    found = execute(
        "v_mfma_f32_16x16x16bf16_1k v[12:15], v[4:5], v[6:7], 0",
        *("s_nop 15",) * 2,
        "v_mov_b32 v2, v12",
        "v_mov_b32 v3, v15",
        inputs=[one, two],
    )
    np.testing.assert_array_equal(found.view(np.float32), 32)
