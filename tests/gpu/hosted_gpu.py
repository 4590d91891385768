"""A GPU in the memory of the host: a mock driver launches, the interpreter computes."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from gpu_interpreter import launch
from torch import Tensor

from magweld.api import compile_imported
from magweld.artifact import Program
from magweld.bindings import gpu, ir
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.device_compiler import GENERATED, device_options
from magweld.host_function import read_host_function
from magweld.importer.importer import ImportedGraph
from magweld.passes.gpu.tensor_maps import maps_of
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import BlockShape, block_steps
from magweld.runtime.gpu.driver import LibraryDriver
from magweld.runtime.gpu.kernels import GpuKernels
from magweld.runtime.gpu.machine import GpuMachine
from magweld.runtime.machine import Repeated
from magweld.targets import Target, parse_target

STREAM = 0x5EED
_CALLBACK = ctypes.CFUNCTYPE(
    None,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_uint,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
)


@dataclass(frozen=True)
class Launched:
    """One launch as the driver saw it."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    stream: int


class MockDriver:
    """The mock library, and what was launched through it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.library = ctypes.CDLL(path)
        self.launched: list[Launched] = []
        self.kernels: dict[str, Callable[[Any], None]] = {}
        self._callback = _CALLBACK(self._on_launch)
        gc.collect()  # programs of earlier tests
        self.library.mock_reset(self._callback)

    def fail(self, function: str, code: int) -> None:
        """Make a function fail from now on."""
        self.library.mock_fail(function.encode(), code)

    def _on_launch(
        self, kernel: bytes, extents: Any, shared: int, stream: int, parameters: Any
    ) -> None:
        name = kernel.decode()
        grid, block = tuple(extents[0:3]), tuple(extents[3:6])
        self.launched.append(Launched(name, grid, block, shared, stream))
        if name in self.kernels:
            self.kernels[name](parameters)


@dataclass
class HostedGpu:
    """A machine whose kernels are launched by a driver on memory of the host.

    Attributes:
        stream: The current stream, None while one is captured.
    """

    driver: LibraryDriver
    synchronous: bool = False
    stream: int | None = STREAM
    device = torch.device("cpu")
    alignment = GpuMachine.alignment

    def load(self, program: Program) -> GpuKernels:
        return GpuKernels(
            program, self.driver, self._current, synchronous=self.synchronous
        )

    def is_current(self) -> bool:
        return True

    def activate(self) -> AbstractContextManager[object]:
        return nullcontext()

    def wait(self) -> None:
        self.driver.synchronize(STREAM)

    def repeated(self, call: Callable[[], object]) -> Repeated:
        def run() -> None:
            call()
            self.wait()

        return Repeated(run)

    def queue(self) -> Hashable | None:
        return self.stream

    def _current(self) -> int:
        return STREAM if self.stream is None else self.stream

    def empty(
        self, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        return torch.empty_strided(shape, stride, dtype=dtype)


Interpreted = Callable[..., None]
Launches = Mapping[str, Callable[[Any], None]]


def compile_interpreted(
    imported: ImportedGraph, target: str, options: CompileOptions = GENERATED
) -> tuple[ImportedGraph, Program, Launches]:
    """Compile a graph, also for the interpreter.

    Returns:
        The graph, its program, and for each kernel what computes its launches: a
        function of the array of parameters that a driver gets.
    """
    imported, program = compile_imported(imported, options, target=target)
    kernels = interpreted_kernels(imported.text, target, options)
    tables = {launch.kernel for launch in program.launches if launch.is_table}
    launches = {
        name: _of_table(run) if name in tables else _of_cells(run)
        for name, run in kernels.items()
    }
    return imported, program, launches


def interpreted_kernels(
    text: str, target: str, options: CompileOptions = GENERATED
) -> dict[str, Interpreted]:
    """Return the kernels of a graph by name, as functions of their addresses.

    What else such a function takes goes to the interpreter's `launch`.
    """
    chosen = parse_target(target)
    kernels: dict[str, Interpreted] = {}
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        lower_to_tiles(module, device_options(chosen, options), target=chosen)
        functions = {op.name.value: op for op in module.body.operations}
        calls = [c for c in read_host_function(module).calls if c.kind == "kernel"]
        made: dict[tuple[str, int], _Interpreted] = {}
        for call in calls:
            for part in call.parts or (call,):
                key = part.callee, part.members
                if key not in made:
                    made[key] = _interpreted(functions[part.callee], *key[1:], chosen)
            parts = [made[one.callee, one.members] for one in call.parts or (call,)]
            # Kernels that have no code together are launched apart.
            kernels.update((one.name, _one_after_another([one])) for one in parts)
            if call.parts:
                kernels[call.callee] = _one_after_another(parts)
    return kernels


def _one_after_another(parts: Sequence[_Interpreted]) -> Interpreted:
    """Return kernels of one launch, whose pointers follow each other, as one."""

    def run(address_of: Callable[[int], int], **options: Any) -> None:
        def address_behind(first: int, place: int) -> int:
            return address_of(first + place)

        first = 0
        for part in parts:
            part.run(partial(address_behind, first), **options)
            first += part.pointers

    return run


def _of_table(run: Interpreted) -> Callable[[Any], None]:
    """Return a kernel of several members likewise: the array has one table."""

    def run_table(parameters: Any) -> None:
        table = parameters[0]
        run(lambda place: ctypes.c_uint64.from_address(table + 8 * place).value)

    return run_table


def _of_cells(run: Interpreted) -> Callable[[Any], None]:
    """Return a kernel as a function of the array that a driver gets."""

    def run_cells(parameters: Any) -> None:
        run(lambda place: ctypes.c_uint64.from_address(parameters[place]).value)

    return run_cells


@dataclass(frozen=True)
class _Interpreted:
    """A kernel for the interpreter.

    Attributes:
        name: That of its launch.
        run: Runs it on its addresses, those of one member after another.
        pointers: How many these are.
    """

    name: str
    run: Interpreted
    pointers: int


def _interpreted(function: Any, members: int, target: Target) -> _Interpreted:
    """Compile a kernel for the interpreter."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function.operation.clone()
    run_pipeline(Pipeline(block_steps(BlockShape.of(target))), module)
    launches = operations_of(module.operation, gpu.LaunchFuncOp)
    assert len(launches) == 1
    (host,) = (op for op in module.body if "tile_graph.kernel" in op.attributes)
    types = [argument.type for argument in host.entry_block.arguments]
    numbers = [operand.arg_number for operand in launches[0].kernelOperands]
    maps = {one.number: one.argument for one in maps_of(host)}
    text = str(module)

    def run(address_of: Callable[[int], int], **options: Any) -> None:
        for first in range(0, members * len(numbers), len(numbers)):
            arrays: list[Any] = [None] * len(types)
            for place, number in enumerate(numbers, first):
                arrays[number] = shapes[number](address_of(place))
            for number, tensor in maps.items():
                arrays[tensor] = shapes[tensor](arrays[number])
            with make_context(), ir.Location.unknown():
                launch(ir.Module.parse(text), arrays, **options)

    shapes = [_array_at(type_) for type_ in types]
    name = ir.SymbolRefAttr(launches[0].kernel).value[-1]
    table = f"{name}_members" if members > 1 else name
    return _Interpreted(table, run, members * len(numbers))


_NUMPY = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i1": np.bool_}
_NUMPY |= {"f16": np.float16, "bf16": np.uint16, "i32": np.int32}


def _array_at(type_: ir.Type) -> Callable[[int], Any]:
    """Return what makes an array of an address; of a tensor map it is the tensor's."""
    if not isinstance(type_, ir.MemRefType):
        return int
    shape, dtype = tuple(type_.shape), np.dtype(_NUMPY[str(type_.element_type)])
    nbytes = prod(shape) * dtype.itemsize

    def at(address: int) -> np.ndarray:
        raw = (ctypes.c_uint8 * nbytes).from_address(address)
        return np.frombuffer(raw, dtype).reshape(shape)

    return at
