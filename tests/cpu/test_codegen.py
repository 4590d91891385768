"""Checks object code: literals, launch functions and loading."""

import ctypes
import logging
import math
import os
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from magweld.bindings import ir
from magweld.codegen import loader
from magweld.codegen.host import CodegenError, HostTarget, emit_object
from magweld.codegen.joint_launch import JointLaunch, joint_module
from magweld.codegen.kernel_signature import KernelSignature
from magweld.codegen.launch import Launch, launch_module
from magweld.codegen.llvm_literals import respell_literals
from magweld.codegen.llvm_text import translate_to_llvm_ir
from magweld.codegen.loader import LoadedObjects, LoadError

DOUBLE = "define double @f(double %x) { %y = fadd double %x, 1.0\n ret double %y }"
# Writes hi - lo to the first destination.
COUNT = """
define void @count(ptr %out, i64 %lo, i64 %hi) {
  %n = sub i64 %hi, %lo
  %old = atomicrmw add ptr %out, i64 %n seq_cst
  ret void
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fadd float %0, f0x3FB8AA3B", "fadd float %0, 0x3FF7154760000000"),
        ("fadd float %0, 1.000000e-01", "fadd float %0, 0x3FB99999A0000000"),
        ("fmul float %0, -inf", "fmul float %0, 0xFFF0000000000000"),
        ("fmul float %0, +qnan", "fmul float %0, 0x7FF8000000000000"),
        ("fmul float %0, +snan(0x1)", "fmul float %0, 0x7FF0000020000000"),
        ("fmul half %1, 9.997550e-02", "fmul half %1, 0xH2E66"),
        ("fmul bfloat %2, +inf", "fmul bfloat %2, 0xR7F80"),
        ("fmul bfloat %2, 1.000980e-01", "fmul bfloat %2, 0xR3DCD"),
        ("fmul double %3, 1.000000e-01", "fmul double %3, 0x3FB999999999999A"),
        ("<2 x float> <float 1.0, float -0.0>", None),
        ('@s = constant [4 x i8] c"1.5\\00"', '@s = constant [4 x i8] c"1.5\\00"'),
        ("br label %1.2 ; 1.5", "br label %1.2 ; 1.5"),
    ],
)
def test_literals_are_spelled_as_bits(text: str, expected: str | None) -> None:
    if expected is None:
        expected = "<2 x float> <float 0x3FF0000000000000, float 0x8000000000000000>"
    assert respell_literals(text) == expected


def test_a_literal_without_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'1\.5' has no type"):
        respell_literals("  1.5")


@pytest.mark.parametrize(
    "number", [0.1, -0.0, math.inf, -math.inf, 3.4e38, 1e-45, 1.0 / 3.0]
)
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_constants_survive_the_way_to_llvm(kind: str, number: float) -> None:
    with ir.Context(), ir.Location.unknown():
        constant = ir.FloatAttr.get(ir.Type.parse(kind), number)
        expected = constant.value
        module = ir.Module.parse(
            f"llvm.func @f() -> f64 {{ %0 = llvm.mlir.constant({constant}) : {kind}\n"
            + (
                "llvm.return %0 : f64 }"
                if kind == "f64"
                else f"%1 = llvm.fpext %0 : {kind} to f64\nllvm.return %1 : f64 }}"
            )
        )
        text = translate_to_llvm_ir(module)
    objects = LoadedObjects([emit_object([text], HostTarget.detect())], ["f"])
    result = ctypes.CFUNCTYPE(ctypes.c_double)(objects.address("f"))()
    assert result == expected
    assert math.copysign(1.0, result) == math.copysign(1.0, expected)


@pytest.mark.parametrize("tiles", [1, 2, 7, 1000])
@pytest.mark.parametrize("parallel", [False, True])
def test_every_tile_is_launched_once(tiles: int, parallel: bool) -> None:
    launch = Launch("go", KernelSignature("count", 1, tiles), (3,), parallel)
    data = emit_object([COUNT, launch_module([launch])], HostTarget.detect())
    objects = LoadedObjects([data], ["go"])
    total = ctypes.c_int64(0)
    table = (ctypes.c_int64 * 4)(0, 0, 0, ctypes.addressof(total))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(objects.address("go"))(table)
    assert total.value == tiles


# Adds tile + 1 for each tile of a member to what its pointer leads to.
SUM_OF_TILES = """
define void @sum(ptr %p, i64 %lo, i64 %hi) {
entry:
  br label %head
head:
  %t = phi i64 [ %lo, %entry ], [ %next, %body ]
  %more = icmp slt i64 %t, %hi
  br i1 %more, label %body, label %done
body:
  %next = add i64 %t, 1
  %was = atomicrmw add ptr %p, i64 %next seq_cst
  br label %head
done:
  ret void
}
"""


@pytest.mark.parametrize("tiles", [1, 2, 7])
@pytest.mark.parametrize("members", [2, 3, 64])
@pytest.mark.parametrize("parallel", [False, True])
def test_every_tile_of_every_member_is_launched_once(
    tiles: int, members: int, parallel: bool
) -> None:
    kernel = KernelSignature("sum", 1, tiles)
    entries = tuple(reversed(range(members)))
    launch = Launch("go", kernel, entries, parallel, members)
    data = emit_object([SUM_OF_TILES, launch_module([launch])], HostTarget.detect())
    objects = LoadedObjects([data], ["go"])
    sums = (ctypes.c_int64 * members)()
    first = ctypes.addressof(sums)
    table = (ctypes.c_int64 * members)(*(first + 8 * k for k in range(members)))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(objects.address("go"))(table)
    assert list(sums) == [tiles * (tiles + 1) // 2] * members


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("parallel", [False, True])
def test_members_begin_within_one_entry(members: int, parallel: bool) -> None:
    kernel, shifts = KernelSignature("sum", 1, 2), tuple(8 * k for k in range(members))
    entries = (0,) * members
    launch = Launch("go", kernel, entries, parallel, members, shifts=shifts)
    data = emit_object([SUM_OF_TILES, launch_module([launch])], HostTarget.detect())
    objects = LoadedObjects([data], ["go"])
    sums = (ctypes.c_int64 * members)()
    table = (ctypes.c_int64 * 1)(ctypes.addressof(sums))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(objects.address("go"))(table)
    assert list(sums) == [3] * members


def test_one_kernel_has_many_launches() -> None:
    kernel = KernelSignature("count", 1, 2)
    launches = [Launch(f"go{k}", kernel, (k,), parallel=False) for k in range(3)]
    data = emit_object([COUNT, launch_module(launches)], HostTarget.detect())
    objects = LoadedObjects([data], [launch.symbol for launch in launches])
    assert len({objects.address(f"go{k}") for k in range(3)}) == 3


def test_launch_wants_an_entry_for_every_pointer() -> None:
    with pytest.raises(ValueError, match="expected 2 table entries"):
        Launch("go", KernelSignature("k", 2, 1), (0,), parallel=False)
    with pytest.raises(ValueError, match="expected 6 table entries"):
        Launch("go", KernelSignature("k", 2, 1), (0, 1), parallel=False, members=3)
    with pytest.raises(ValueError, match="expected 1 shifts"):
        Launch("go", KernelSignature("k", 1, 1), (0,), False, shifts=(0, 8))


def test_bad_llvm_ir_is_a_codegen_error() -> None:
    with pytest.raises(CodegenError, match="does not take the generated code"):
        emit_object(["define void @f() { nonsense }"], HostTarget.detect())
    with pytest.raises(CodegenError, match="no code"):
        emit_object([], HostTarget.detect())


def test_damaged_objects_are_refused() -> None:
    data = emit_object([DOUBLE], HostTarget.detect())
    for damaged in (b"", b"not an object", data[: len(data) // 2]):
        with pytest.raises(LoadError, match="cannot load kernels"):
            LoadedObjects([damaged], ["f"])


def test_missing_symbol_is_refused() -> None:
    data = emit_object([DOUBLE], HostTarget.detect())
    with pytest.raises(LoadError, match="missing"):
        LoadedObjects([data], ["missing"])


def test_equal_symbols_of_two_programs_do_not_meet() -> None:
    other = DOUBLE.replace("1.0", "2.0")
    both = [
        LoadedObjects([emit_object([text], HostTarget.detect())], ["f"])
        for text in (DOUBLE, other)
    ]
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    assert [kind(o.address("f"))(0.5) for o in both] == [1.5, 2.5]


def test_without_openmp_kernels_run_on_the_calling_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loader, "find_openmp", lambda: None)
    launch = Launch("go", KernelSignature("count", 1, 5), (0,), parallel=True)
    data = emit_object([COUNT, launch_module([launch])], HostTarget.detect())
    with caplog.at_level(logging.WARNING):
        objects = LoadedObjects([data], ["go"])
    assert not objects.parallel
    assert "no OpenMP runtime" in caplog.text
    total = ctypes.c_int64(0)
    table = (ctypes.c_int64 * 1)(ctypes.addressof(total))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(objects.address("go"))(table)
    assert total.value == 5


def test_the_process_keeps_one_openmp_runtime() -> None:
    code = """
import torch
from magweld.codegen.loader import LoadedObjects, find_openmp
from magweld.codegen.host import HostTarget, emit_object
def runtimes():
    lines = open("/proc/self/maps").read().splitlines()
    return {line.split()[-1] for line in lines if "omp" in line.split()[-1]}
before = runtimes()
text = "define void @f() { ret void }"
objects = LoadedObjects([emit_object([text], HostTarget.detect())], ["f"])
assert objects.parallel and find_openmp() is not None
assert runtimes() == before, (before, runtimes())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_codegen_does_not_import_torch() -> None:
    code = (
        "import sys, magweld.codegen.loader, magweld.passes.pipelines.cpu;"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


LIMITED = """
from magweld.codegen.host import HostTarget
from magweld.runtime.fingerprint import compiler_identity
from magweld.targets.host import host_device
target = HostTarget.detect()
enabled = [word for word in target.features.split(",") if word.startswith("+")]
beyond = [f for f in enabled if f.startswith(("+avx512", "+avx10", "+amx", "+evex"))]
assert not beyond, beyond
assert target.vector_bits <= 256 and target.vector_registers == 16
assert host_device().vector_bits <= 256
assert "capability avx2" in compiler_identity()
"""


def test_code_may_be_limited_to_avx2() -> None:
    environment = os.environ | {"MAGWELD_CPU_CAPABILITY": "avx2"}
    command = [sys.executable, "-c", LIMITED]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_host_target_names_this_cpu() -> None:
    target = HostTarget.detect()
    assert target.cpu == llvm.get_host_cpu_name()
    assert target.vector_bits in (128, 256, 512)


def test_code_generator_makes_no_vectors_of_bfloat() -> None:
    target = HostTarget("x86_64-unknown-linux-gnu", "znver4", "+avx512bf16,+avx512f")
    text = """
define <16 x bfloat> @f(<16 x float> %x) {
  %y = fptrunc <16 x float> %x to <16 x bfloat>
  ret <16 x bfloat> %y
}
"""
    machine = target.machine()
    assert "vcvtneps2bf16" not in machine.emit_assembly(llvm.parse_assembly(text))


@pytest.mark.parametrize(
    ("features", "pairs"),
    [
        ("+avx,+avx512f,+avx512vl,+avx512bf16", True),
        ("+avx,+avx512f,+avx512vl,-avx512bf16", False),
        ("+avx,-avx512f,+avx512bf16", False),
    ],
)
def test_pairs_are_multiplied_where_there_is_an_instruction(
    features: str, pairs: bool
) -> None:
    assert HostTarget("", "", features).multiplies_pairs == pairs


# Runs what portable code asks for in two ranges.
IN_TWO_RANGES = """
define void @magweld_parallel(ptr %table, ptr %range, i64 %tiles, i64 %threads) {
  %third = udiv i64 %tiles, 3
  call void %range(ptr %table, i64 %third, i64 %tiles)
  call void %range(ptr %table, i64 0, i64 %third)
  ret void
}
"""


@pytest.mark.parametrize("shares", [(1, 1), (900, 10), (7, 100000), (1, 1, 1, 1)])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("portable", [False, True])
def test_every_tile_of_every_part_is_launched_once(
    shares: tuple[int, ...], apart: bool, portable: bool
) -> None:
    tiles = [1, 7, 64, 2][: len(shares)]
    parts = [
        Launch(
            f"go_part_{number}",
            KernelSignature("sum", 1, count),
            (number,) * (1 + number),
            parallel=True,
            members=1 + number,
            share=share,
        )
        for number, (count, share) in enumerate(zip(tiles, shares, strict=True))
    ]
    joint = JointLaunch("go", tuple((part.symbol, part.share) for part in parts))
    texts = [SUM_OF_TILES, launch_module(parts), joint_module([joint], portable)]
    texts += [IN_TWO_RANGES] * portable
    target = HostTarget.detect()
    # The launch and what runs its parts may be in different objects.
    split = [texts[:2], texts[2:]] if apart else [texts]
    made = [emit_object(part, target) for part in split]
    objects = LoadedObjects(made, ["go"])
    sums = (ctypes.c_int64 * len(parts))()
    first = ctypes.addressof(sums)
    table = (ctypes.c_int64 * len(parts))(*(first + 8 * k for k in range(len(parts))))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(objects.address("go"))(table)
    assert list(sums) == [
        part.members * count * (count + 1) // 2
        for part, count in zip(parts, tiles, strict=True)
    ]


COUNT_OF_CALLS = """
define void @count(ptr %p, i64 %lo, i64 %hi) {
  %was = atomicrmw add ptr %p, i64 1 seq_cst
  ret void
}
"""


@pytest.mark.parametrize("shares", [(24000, 48000), (1, 1), (9, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("portable", [False, True])
def test_a_part_without_a_loop_over_tiles_runs_once(
    shares: tuple[int, ...], portable: bool
) -> None:
    kernel = KernelSignature("count", 1, 1)
    parts = [
        Launch(f"go_part_{n}", kernel, (n,), parallel=True, share=share)
        for n, share in enumerate(shares)
    ]
    joint = JointLaunch("go", tuple((part.symbol, part.share) for part in parts))
    texts = [COUNT_OF_CALLS, launch_module(parts), joint_module([joint], portable)]
    texts += [IN_TWO_RANGES] * portable
    objects = LoadedObjects([emit_object(texts, HostTarget.detect())], ["go"])
    calls = (ctypes.c_int64 * len(parts))()
    first = ctypes.addressof(calls)
    table = (ctypes.c_int64 * len(parts))(*(first + 8 * k for k in range(len(parts))))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(objects.address("go"))(table)
    assert list(calls) == [1] * len(parts)


def test_a_part_has_a_number_of_tiles() -> None:
    kernel = KernelSignature("k", 1, 1, has_extent=True)
    with pytest.raises(ValueError, match="expected a number of tiles"):
        Launch("go", kernel, (0,), parallel=True, words=1, share=1)
