"""Owns the compilation of kernel text for the tests of the CPU passes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template

import pytest
import torch
from torch import Tensor

from magweld.bindings import ir
from magweld.codegen.host import HostTarget
from magweld.codegen.kernels import compile_kernels
from magweld.codegen.launch import Launch
from magweld.codegen.llvm_text import kernel_signatures
from magweld.codegen.loader import LoadedObjects
from magweld.context import make_context
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline, Step
from magweld.passes.pipelines.cpu import cpu_steps

KERNELS = Path(__file__).parent / "kernels"
LAUNCH = "launch_0"


class Kernel:
    """A compiled kernel that is called with its operands, then its destination."""

    def __init__(self, text: str, steps: Sequence[Step], *, parallel: bool) -> None:
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            run_pipeline(Pipeline(tuple(steps)), module)
            self.lowered = str(module)
            (self.signature,) = kernel_signatures(module)
            entries = tuple(range(self.signature.pointers))
            launch = Launch(LAUNCH, self.signature, entries, parallel)
            objects = [compile_kernels(module, [launch])]
        symbols = [LAUNCH, self.signature.symbol]
        self._objects = LoadedObjects(objects, symbols)

    def __call__(self, *tensors: Tensor) -> Tensor:
        assert all(t.is_contiguous() for t in tensors)
        table = (ctypes.c_int64 * len(tensors))(*(t.data_ptr() for t in tensors))
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        function(self._objects.address(LAUNCH))(table)
        return tensors[-1]

    def run_tiles(self, low: int, high: int, *tensors: Tensor) -> None:
        """Call the kernel itself for some of its tiles."""
        kinds = [ctypes.c_void_p] * len(tensors) + [ctypes.c_int64] * 2
        function = ctypes.CFUNCTYPE(None, *kinds)
        address = self._objects.address(self.signature.symbol)
        function(address)(*(t.data_ptr() for t in tensors), low, high)


Build = Callable[..., Kernel]


def host_steps() -> tuple[Step, ...]:
    target = HostTarget.detect()
    bits, registers = target.vector_bits, target.vector_registers
    return cpu_steps(VectorUnit(bits, registers, target.multiplies_pairs))


@pytest.fixture(scope="session")
def build() -> Build:
    def compile_text(
        text: str, steps: Sequence[Step] | None = None, *, parallel: bool = True
    ) -> Kernel:
        return Kernel(text, host_steps() if steps is None else steps, parallel=parallel)

    return compile_text


@pytest.fixture(scope="session")
def build_template(build: Build) -> Build:
    def compile_template(name: str, **sizes: int) -> Kernel:
        text = (KERNELS / f"{name}.mlir").read_text()
        return build(Template(text).substitute(sizes))

    return compile_template


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
