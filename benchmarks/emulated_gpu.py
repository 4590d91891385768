"""An AMD GPU in the memory of the host: machine code runs instruction by instruction.

The emulator is no part of this package. It is found beside the checkout, in
`../shared/tools/amd_emulator`, or where `MAGWELD_AMD_EMULATOR` says; it needs clang.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from magweld.artifact import Program
from magweld.device_compiler import compile_for_device
from magweld.importer.importer import ImportedGraph
from magweld.runtime.container import decode_program, encode_request
from magweld.runtime.gpu.driver import DeviceError, Geometry
from magweld.runtime.gpu.kernels import GpuKernels
from magweld.runtime.gpu.machine import GpuMachine
from magweld.runtime.machine import Repeated
from magweld.runtime.program import LoadedProgram

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "tools" / "amd_emulator"


def folder() -> Path:
    """Return where the emulator should be."""
    return Path(os.environ.get("MAGWELD_AMD_EMULATOR", _BESIDE))


def missing() -> str:
    """Return why nothing can be emulated here, "" if it can."""
    if not (folder() / "emulate.py").is_file():
        return f"no emulator in {folder()}"
    if shutil.which("clang") is None:
        return "the emulator needs clang"
    return ""


class HostDriver:
    """What drivers share that run a launch at once, in the memory of the host."""

    def launch(
        self,
        function: Any,
        geometry: Geometry,
        stream: int,
        pointers: Sequence[int],
        *,
        is_table: bool = False,
    ) -> None:
        """Run all blocks of a kernel, whose parameters lie as a table of them does."""
        raise NotImplementedError

    def function(self, module: Any, kernel: str, shared_bytes: int) -> Any:
        """Return what `launch` and `prepare` take."""
        return module, kernel

    def prepare(
        self,
        function: Any,
        geometry: Geometry,
        stream: int,
        places: Sequence[int],
        *,
        is_table: bool = False,
    ) -> Callable[[], int]:
        """Return what launches a kernel on the pointers that lie there then."""

        def run() -> int:
            pointers = [ctypes.c_uint64.from_address(place).value for place in places]
            self.launch(function, geometry, stream, pointers, is_table=is_table)
            return 0

        return run

    def error(self, id: str, code: int) -> DeviceError:
        """Return an error, which no kernel here makes."""
        return DeviceError(id, f"error {code}")

    def synchronize(self, stream: int) -> None:
        """Return: nothing is left to be done."""

    def unload(self, module: Any) -> None:
        """Leave the code to the garbage collector."""


@dataclass
class EmulatedDriver(HostDriver):
    """A driver whose kernels are machine code, run by the emulator.

    Attributes:
        seconds: What each launch took, by kernel.
    """

    seconds: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if str(folder()) not in sys.path:
            sys.path.append(str(folder()))
        self._emulate = importlib.import_module("emulate")
        _mend_signs()
        _mend_carries()
        _mend_swizzles()

    def load(self, image: bytes) -> Any:
        """Return a code object in memory."""
        return self._emulate.CodeObject(image)

    def launch(
        self,
        function: Any,
        geometry: Geometry,
        stream: int,
        pointers: Sequence[int],
        *,
        is_table: bool = False,
    ) -> None:
        """Run all blocks of a kernel, whose parameters lie as a table of them does."""
        code, kernel = function
        start = time.monotonic()
        self._emulate.launch(
            code, kernel, geometry.grid, geometry.block, geometry.shared_bytes, pointers
        )
        self.seconds.append((kernel, time.monotonic() - start))


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


@dataclass
class EmulatedGpu:
    """The machine of programs that are emulated; its memory is that of the host."""

    driver: EmulatedDriver = field(default_factory=EmulatedDriver)
    device = torch.device("cpu")
    alignment = GpuMachine.alignment

    def load(self, program: Program) -> GpuKernels:
        """Load the kernels of a program."""
        return GpuKernels(program, self.driver, lambda: 0)

    def is_current(self) -> bool:
        """Return true: there is one machine."""
        return True

    def activate(self) -> AbstractContextManager[object]:
        """Make this machine the current one."""
        return nullcontext()

    def wait(self) -> None:
        """Return: nothing is left to be done."""

    def repeated(self, call: Callable[[], object]) -> Repeated:
        """Return the call."""
        return Repeated(call)

    def queue(self) -> Hashable | None:
        """Return the only stream."""
        return 0

    def empty(
        self, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """Return memory full of NaN, so that what no kernel writes shows."""
        made = torch.empty_strided(shape, stride, dtype=dtype)
        return made.fill_(float("nan")) if dtype.is_floating_point else made


def compile_in_process(
    graph: ImportedGraph, target: str
) -> tuple[ImportedGraph, Program]:
    """Compile a graph in this process; what is refused runs through torch."""
    while True:
        answer = compile_for_device(encode_request(target, graph.text))
        program = decode_program(answer)
        if not program.unlowered:
            return graph, program
        graph = graph.with_externals(program.unlowered)


def emulated(
    graph: ImportedGraph, program: Program, machine: EmulatedGpu
) -> Callable[..., Any]:
    """Return a program as a function of the tensors of its graph."""

    def run_external(node: str, tensors: Any) -> Any:
        external = graph.externals[node]
        if "device" in external.node.kwargs:
            external.node.update_kwarg("device", torch.device("cpu"))
        return external(tensors)

    loaded = LoadedProgram(program, run_external, machine)

    def call(*tensors: Tensor) -> Any:
        inputs = list(tensors)
        return graph.finish(inputs, loaded(graph.prepare(inputs)))

    return call
