"""Owns form-gpu-launch: block and thread loops become one gpu.launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import arith, func, gpu, gpu_transform, ir
from magweld.passes.gpu.place_shared_memory import SHARED_BYTES
from magweld.passes.gpu.structure import block_loop_of, kernels_of
from magweld.passes.gpu.transform_script import apply_script
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error, operations_of


@dataclass(frozen=True)
class FormGpuLaunch(Pass):
    """Turn the mapped loops of every kernel into `gpu.launch`.

    The block loop gives the grid, one-dimensional; thread loops become code that the
    threads with work run, the rest skipping it. `magweld.shared_bytes` of the kernel
    becomes the dynamic shared memory of the launch.
    """

    name: ClassVar[str] = "form-gpu-launch"

    threads: Annotated[int, "threads of a block"] = 256
    subgroup: Annotated[int, "threads that execute in lockstep"] = 32

    def run(self, module: Any) -> None:
        """Form the launch of all kernels."""
        for number in range(len(kernels_of(module))):
            kernel = kernels_of(module)[number]
            block_loop_of(kernel)  # or it is an error at the kernel
            with kernel.location:
                apply_script(kernel, self._map_loops)
            _set_shared_bytes(kernels_of(module)[number])

    def _map_loops(self, root: ir.Value) -> None:
        launch = gpu_transform.MapForallToBlocks(root, generate_gpu_launch=True)
        gpu_transform.MapNestedForallToThreads(
            launch.result,
            block_dims=[self.threads, 1, 1],
            warp_size=self.subgroup,
            sync_after_distribute=False,  # insert-barriers has put the needed ones
        )


def _set_shared_bytes(kernel: func.FuncOp) -> None:
    if SHARED_BYTES not in kernel.attributes:
        raise located_error(kernel, f"expected the attribute {SHARED_BYTES}")
    size = ir.IntegerAttr(kernel.attributes[SHARED_BYTES]).value
    for launch in operations_of(kernel, gpu.LaunchOp) if size else []:
        with ir.InsertionPoint(launch), launch.location:
            i32 = ir.IntegerType.get_signless(32)
            sized = gpu.LaunchOp(
                (launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ),
                (launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ),
                dynamic_shared_memory_size=arith.ConstantOp(i32, size).result,
            )
        _move_body(launch.operation.regions[0].blocks[0], sized)
        launch.erase()


def _move_body(block: ir.Block, launch: gpu.LaunchOp) -> None:
    target = launch.operation.regions[0].blocks[0]
    for old, new in zip(block.arguments, target.arguments, strict=True):
        old.replace_all_uses_with(new)
    for op in list(block.operations):
        target.append(op)
