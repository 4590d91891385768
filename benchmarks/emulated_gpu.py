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
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import emulator_mends
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
from magweld.tensor_map import TensorMap

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "tools" / "amd_emulator"
_INTERPRETER = Path(__file__).resolve().parents[1] / "tests" / "gpu"


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

    has_tensor_maps = True

    def encode(self, one: TensorMap, address: int, place: int) -> int:
        """Put the address of a tensor where its map goes: kernels know the rest."""
        ctypes.c_uint64.from_address(place).value = address
        return 0

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
        emulator_mends.mend()

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


@dataclass
class InterpretedDriver(HostDriver):
    """A driver whose kernels run in the interpreter of the tests, races being errors.

    Attributes:
        kernels: By name, functions of their addresses.
        seconds: What each launch took, by kernel.
    """

    kernels: Mapping[str, Callable[..., None]]
    seconds: list[tuple[str, float]] = field(default_factory=list)

    def load(self, image: bytes) -> None:
        """Leave the machine code alone."""

    def launch(
        self,
        function: Any,
        geometry: Geometry,
        stream: int,
        pointers: Sequence[int],
        *,
        is_table: bool = False,
    ) -> None:
        """Run all blocks of a kernel."""
        _, kernel = function
        start = time.monotonic()
        self.kernels[kernel](pointers.__getitem__)
        self.seconds.append((kernel, time.monotonic() - start))


def interpreted(text: str, target: str) -> Mapping[str, Callable[..., None]]:
    """Return the kernels of a graph for the interpreter of the tests, by name."""
    if str(_INTERPRETER) not in sys.path:
        sys.path.append(str(_INTERPRETER))
    kernels: Mapping[str, Callable[..., None]]
    kernels = importlib.import_module("hosted_gpu").interpreted_kernels(text, target)
    return kernels


@dataclass
class EmulatedGpu:
    """The machine of programs that are emulated; its memory is that of the host."""

    driver: EmulatedDriver | InterpretedDriver = field(default_factory=EmulatedDriver)
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


def machine_for(graph: ImportedGraph, target: str) -> EmulatedGpu:
    """Return the machine that runs the program of a graph for a target."""
    if target.startswith("rocdl"):
        return EmulatedGpu()
    return EmulatedGpu(InterpretedDriver(interpreted(graph.text, target)))


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
