"""Owns allow-registers: how many blocks a multiprocessor has registers for at least."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import gpu, ir, llvm
from magweld.passes.gpu.structure import constant_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of

BLOCKS = "nvvm.minctasm"
# Shared memory that CUDA keeps of each block for itself.
_RESERVED = 1024
# Threads for which 65536 registers are 128 each, enough for 64 sums and what they need.
_THREADS = 512
_WARPGROUP = "nvvm.wgmma"
# Registers of a multiprocessor. What a loop carries from one iteration to the next
# takes as many again for what an iteration makes, and some for addresses.
_REGISTERS = 65536
_BESIDE = 48


@dataclass(frozen=True)
class AllowRegisters(Pass):
    """Say how many blocks of each kernel have to be on a multiprocessor at a time.

    Of kernels whose number of threads alone is known ptxas leaves registers for as many
    blocks as threads fit, down to 32 a thread: loads then wait for each other, and what
    a thread keeps is spilled. Two blocks leave 128 registers a thread. Only one is
    asked for where shared memory has no room for two, or where the sums of warpgroups
    alone take as many.
    """

    name: ClassVar[str] = "allow-registers"

    capacity: Annotated[int, "bytes of shared memory of a multiprocessor"] = 49152

    def run(self, module: Any) -> None:
        """Annotate the kernels that are launched."""
        i32 = ir.IntegerType.get_signless(32)
        kernels = {
            (ir.StringAttr(device.sym_name).value, function.sym_name.value): function
            for device in operations_of(module, gpu.GPUModuleOp)
            for function in operations_of(device, llvm.LLVMFuncOp)
        }
        for launch in operations_of(module, gpu.LaunchFuncOp):
            kernel = kernels[tuple(ir.SymbolRefAttr(launch.kernel).value)]
            blocks = self._blocks(launch, kernel)
            kernel.operation.attributes[BLOCKS] = ir.IntegerAttr.get(i32, blocks)

    def _blocks(self, launch: Any, kernel: Any) -> int:
        if any(
            op.operation.name.startswith(_WARPGROUP)
            for op in operations_of(kernel, ir.OpView)
        ):
            return 1
        sizes = (launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ)
        threads = math.prod(constant_of(size, launch) for size in sizes)
        registers = _REGISTERS // threads // max(1, 2 * _carried(kernel) + _BESIDE)
        size = launch.dynamicSharedMemorySize
        shared = 0 if size is None else constant_of(size, launch)
        room = (self.capacity + _RESERVED) // (shared + _RESERVED)
        return max(1, min(room, _THREADS // threads, registers))


def _carried(kernel: Any) -> int:
    """Return how many values a loop carries at most: arguments of a block of code."""
    *_, blocks = (list(region.blocks) for region in kernel.operation.regions)
    return max((len(block.arguments) for block in blocks[1:]), default=0)
