"""Machine code for GPUs: what LLVM selects, and what the binaries hold."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from magweld.bindings import gpu, ir
from magweld.codegen.device_code import compile_device_code
from magweld.codegen.device_llvm import DeviceCode, DeviceCodegenError
from magweld.codegen.device_tools import find_lld, find_ptxas, run_tool
from magweld.codegen.llvm_text import translate_to_llvm_ir
from magweld.diagnostics import UnsupportedError
from magweld.passes.gpu.expand_gpu_math import ExpandGpuMath
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import gpu_steps, nvvm_steps, rocdl_steps
from magweld.targets.target import parse_target

NVIDIA = ("nvvm:sm_80", "nvvm:sm_90a")
AMD = {"rocdl:gfx90a": 0x3F, "rocdl:gfx942": 0x4C}
TARGETS = (*NVIDIA, *AMD)
KERNELS = {
    "bias_gelu": {"M": 16, "N": 512, "T": 4},
    "masked_softmax": {"B": 2, "S": 64},
    "linear_relu": {"M": 64, "N": 64, "K": 64, "TM": 32, "TN": 32},
}
# The upstream LLVM that makes the text is newer than the one that reads it: whatever
# the passes emit is tried here, with the instruction that has to come of it.
INTRINSICS = {
    "math.absf": ("%y = math.absf %x : f32", r"abs\.f32", r"v_and_b32.+0x7fffffff"),
    "math.ceil": ("%y = math.ceil %x : f32", r"cvt\.rpi\.f32\.f32", "v_ceil_f32"),
    "math.copysign": (
        "%y = math.copysign %x, %z : f32", r"copysign\.f32|and\.b32", "v_bfi_b32"),
    "math.exp2": ("%y = math.exp2 %x : f32", r"ex2\.approx\.f32", "v_exp_f32"),
    "math.floor": ("%y = math.floor %x : f32", r"cvt\.rmi\.f32\.f32", "v_floor_f32"),
    "math.fma": ("%y = math.fma %x, %x, %z : f32", r"fma\.rn\.f32", "v_fmac?_f32"),
    "math.roundeven": (
        "%y = math.roundeven %x : f32", r"cvt\.rni\.f32\.f32", "v_rndne_f32"),
    "math.sqrt": ("%y = math.sqrt %x : f32", r"sqrt\.rn\.f32", "v_sqrt_f32"),
    "math.trunc": ("%y = math.trunc %x : f32", r"cvt\.rzi\.f32\.f32", "v_trunc_f32"),
    "contract": (
        "%w = arith.mulf %x, %z fastmath<contract> : f32\n"
        "%y = arith.addf %w, %z fastmath<contract> : f32",
        r"fma\.rn\.f32", "v_fmac?_f32"),
    "divf": ("%y = arith.divf %x, %z : f32", r"div\.rn\.f32", "v_div_fixup_f32"),
    "maximumf": (
        "%y = arith.maximumf %x, %z : f32", r"max\.NaN\.f32", "v_max_f32"),
    "minimumf": (
        "%y = arith.minimumf %x, %z : f32", r"min\.NaN\.f32", "v_min_f32"),
    "maxnumf": ("%y = arith.maxnumf %x, %z : f32", r"max\.f32", "v_max_f32"),
    "block_id": (
        "%b = gpu.block_id x\n%c = arith.index_cast %b : index to i32\n"
        "%y = arith.sitofp %c : i32 to f32", r"%ctaid\.x", "v_cvt_f32"),
    "shuffle": (
        "%o = arith.constant 4 : i32\n%w = arith.constant 32 : i32\n"
        "%y, %v = gpu.shuffle xor %x, %o, %w : f32",
        r"shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+, 4, 31, -1", "ds_(bpermute|swizzle)"),
    "shuffle of a wavefront": (
        "%o = arith.constant 4 : i32\n%w = arith.constant 64 : i32\n"
        "%y, %v = gpu.shuffle xor %x, %o, %w : f32",
        r"shfl\.sync\.bfly", "ds_swizzle_b32.+SWAP,4"),
    "barrier": (
        "memref.store %x, %s[%t] : !shared\ngpu.barrier\n"
        "%y = memref.load %s[%u] : !shared", r"bar\.sync", "s_barrier"),
}  # fmt: skip
TEXT = """
!shared = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @device {{
  gpu.func @kernel(%a: memref<64xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %c63 = arith.constant 63 : index
    %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %s = memref.view %bytes[%c0][]
      : memref<?xi8, #gpu.address_space<workgroup>> to !shared
    %t = gpu.thread_id x
    %u = arith.subi %c63, %t : index
    %x = memref.load %a[%t] : memref<64xf32>
    %z = memref.load %a[%u] : memref<64xf32>
    {body}
    memref.store %y, %a[%t] : memref<64xf32>
    gpu.return
  }}
}}
"""


@pytest.fixture
def compile_text(context: None):
    """Compile a module with one GPU module for a target."""

    def compile_module(text: str, target: str) -> DeviceCode:
        module = ir.Module.parse(text)
        family, _, chip = target.partition(":")
        lowering = nvvm_steps(49152) if family == "nvvm" else rocdl_steps(chip)
        run_pipeline(Pipeline((ExpandGpuMath(), *lowering)), module)
        (device_module,) = operations_of(module.operation, gpu.GPUModuleOp)
        return compile_device_code(translate_to_llvm_ir(device_module), target)

    return compile_module


@pytest.mark.sample(24)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", INTRINSICS)
def test_operation_becomes_its_instruction(name, target, compile_text) -> None:
    body, ptx, amd = INTRINSICS[name]
    code = compile_text(TEXT.format(body=body), target)
    assert re.search(ptx if target in NVIDIA else amd, code.assembly)


@pytest.fixture
def compile_kernel(build):
    """Lower a kernel template to `gpu.binary` and return the operation."""
    modules = []  # an operation does not keep its module

    def compile_template(name: str, target: str) -> gpu.BinaryOp:
        module = build(name, KERNELS[name], steps=gpu_steps(parse_target(target)))
        modules.append(module)
        (binary,) = operations_of(module.operation, gpu.BinaryOp)
        return binary

    return compile_template


def objects_of(binary: gpu.BinaryOp) -> dict[str, bytes]:
    """Return the objects of a binary by the name of their format."""
    found = (gpu.ObjectAttr(attribute) for attribute in binary.objects)
    return {gpu.CompilationTarget(o.format).name: o.object for o in found}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", NVIDIA)
def test_nvidia_binary_holds_ptx_and_cubin(name, target, compile_kernel) -> None:
    binary = compile_kernel(name, target)
    objects = objects_of(binary)
    ptx = objects["Assembly"].decode()
    assert f".target {target.partition(':')[2]}" in ptx
    assert ".visible .entry kernel_0_kernel(" in ptx
    assert ".local" not in ptx
    # Lanes of one subgroup share a row of the softmax: they shuffle.
    needs_barrier = name not in ("bias_gelu", "masked_softmax")
    assert ("bar.sync" in ptx) == (".shared" in ptx) == needs_barrier
    if find_ptxas():
        assert objects["Binary"][:4] == b"\x7fELF"
    else:
        assert set(objects) == {"Assembly"}


@pytest.mark.skipif(find_lld() is None, reason="no ld.lld")
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", AMD)
def test_amd_binary_is_a_loadable_code_object(name, target, compile_kernel) -> None:
    code = objects_of(compile_kernel(name, target))["Binary"]
    assert code[:4] == b"\x7fELF"
    kind, machine = struct.unpack_from("<HH", code, 16)
    dynamic, amdgpu = 3, 224
    assert (kind, machine) == (dynamic, amdgpu)
    (flags,) = struct.unpack_from("<I", code, 48)
    assert flags & 0xFF == AMD[target]
    for text in (
        b"kernel_0_kernel.kd",
        b"amdhsa.kernels",
        f"amdgcn-amd-amdhsa--{target.partition(':')[2]}".encode(),
    ):
        assert text in code


def find_objdump() -> str | None:
    """Return an llvm-objdump that knows AMD GPUs."""
    tool = shutil.which("llvm-objdump")
    if tool is None:
        return None
    listing = subprocess.run([tool, "--version"], capture_output=True, text=True)
    return tool if "amdgcn" in listing.stdout else None


@pytest.mark.skipif(find_lld() is None, reason="no ld.lld")
@pytest.mark.skipif(find_objdump() is None, reason="no llvm-objdump for AMD GPUs")
@pytest.mark.parametrize("name", KERNELS)
def test_amd_binary_disassembles(name, compile_kernel, tmp_path: Path) -> None:
    path = tmp_path / "kernel.hsaco"
    path.write_bytes(objects_of(compile_kernel(name, "rocdl:gfx942"))["Binary"])
    # gfx90a is the nearest that older tools know; it has all of these instructions.
    command = [str(find_objdump()), "-d", "--triple=amdgcn-amd-amdhsa"]
    listing = subprocess.run(
        [*command, "--mcpu=gfx90a", str(path)], capture_output=True, text=True
    ).stdout
    assert "<kernel_0_kernel>:" in listing
    assert "s_endpgm" in listing
    if name == "masked_softmax":
        assert "ds_swizzle_b32" in listing or "ds_bpermute_b32" in listing
    elif name != "bias_gelu":
        for instruction in ("s_barrier", "ds_read", "ds_write"):
            assert instruction in listing


def test_launch_geometry_stands_beside_the_objects(compile_kernel) -> None:
    launch = compile_kernel("linear_relu", "nvvm:sm_80").attributes["magweld.launch"]
    assert list(launch["grid"]) == [4, 1, 1]
    assert list(launch["block"]) == [256, 1, 1]
    # Four words behind each row of one of the two keep its columns in different banks,
    # and its rows at addresses that vector accesses take.
    staged_bytes = 4 * (32 * 16 + 32 * (16 + 4))
    assert launch["dynamic_shared_bytes"].value == staged_bytes
    assert launch["symbol"].value == "kernel_0_kernel"
    # Outlining orders parameters by first use; the numbers tell whose they are.
    assert sorted(launch["arguments"]) == [0, 1, 2, 3]


@pytest.mark.parametrize("target", ["cpu", "nvvm:sm_999", "rocdl:gfx000", ""])
def test_unknown_targets_never_reach_llvm(target) -> None:
    with pytest.raises(UnsupportedError, match="known targets: nvvm:sm_80"):
        compile_device_code("", target)


def test_invalid_ir_is_one_error() -> None:
    with pytest.raises(DeviceCodegenError, match="LLVM does not take the code"):
        compile_device_code("define void @f() { nonsense }", "nvvm:sm_80")


def test_a_failing_tool_says_why() -> None:
    with pytest.raises(DeviceCodegenError, match="false failed"):
        run_tool(["false", "{input}", "{output}"], b"")
    with pytest.raises(DeviceCodegenError, match="no-such-tool failed"):
        run_tool(["no-such-tool"], b"")


def test_dynamic_shared_memory_is_external(compile_text) -> None:
    body = INTRINSICS["barrier"][0]
    ptx = compile_text(TEXT.format(body=body), "nvvm:sm_80").assembly
    assert re.search(r"\.extern \.shared \.align 16 \.b8 __dynamic_shmem__\d+\[\]", ptx)


LARGE = """
define ptx_kernel void @large(ptr byval([1024 x ptr]) align 8 %table) {
  %row = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %place = getelementptr [1 x ptr], ptr %table, i32 %row, i32 0
  %address = load ptr addrspace(1), ptr %place, align 8, !invariant.load !0
  store i32 %row, ptr addrspace(1) %address, align 4
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
!0 = !{}
"""


@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a"])
def test_large_tables_stay_in_constant_memory(target: str) -> None:
    """More than 4352 bytes need PTX 8.1, and no thread copies the table."""
    code = compile_device_code(LARGE, target, 8192)
    version = re.search(r"[.]version (\d+)[.](\d+)", code.assembly)
    assert version is not None
    assert tuple(map(int, version.groups())) >= (8, 1)
    assert "ld.param" in code.assembly
    assert ".local" not in code.assembly
    assert code.binary is not None or code.missing
