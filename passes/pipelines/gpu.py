"""Owns the straight lists of steps from tiled kernels to GPU binaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from magweld.passes.cpu.name_contractions import NameContractions
from magweld.passes.cpu.unshare_inits import UnshareInits
from magweld.passes.gpu.allow_registers import AllowRegisters
from magweld.passes.gpu.annotate_parameters import AnnotateParameters
from magweld.passes.gpu.cast_collapsed_rows import CastCollapsedRows
from magweld.passes.gpu.contract_multiply_add import ContractMultiplyAdd
from magweld.passes.gpu.copy_by_vectors import CopyByVectors
from magweld.passes.gpu.declare_shared_memory import DeclareSharedMemory
from magweld.passes.gpu.expand_gpu_math import ExpandGpuMath
from magweld.passes.gpu.form_gpu_launch import FormGpuLaunch
from magweld.passes.gpu.insert_barriers import InsertBarriers
from magweld.passes.gpu.join_launches import JoinLaunches
from magweld.passes.gpu.join_tile_loops import JoinTileLoops
from magweld.passes.gpu.keep_tiles_in_registers import KeepTilesInRegisters
from magweld.passes.gpu.launch_members import LaunchMembers
from magweld.passes.gpu.lower_async_copies import LowerAsyncCopies
from magweld.passes.gpu.lower_bulk_copies import LowerBulkCopies
from magweld.passes.gpu.lower_matrix_instructions import LowerMatrixInstructions
from magweld.passes.gpu.lower_register_streams import LowerRegisterStreams
from magweld.passes.gpu.lower_subgroup_reductions import LowerSubgroupReductions
from magweld.passes.gpu.map_tiles_to_blocks import MapTilesToBlocks
from magweld.passes.gpu.map_tiles_to_threads import MapTilesToThreads
from magweld.passes.gpu.map_to_matrix_instructions import MapToMatrixInstructions
from magweld.passes.gpu.multiply_window_points import MultiplyWindowPoints
from magweld.passes.gpu.order_register_loops import OrderRegisterLoops
from magweld.passes.gpu.pad_products import PadProducts
from magweld.passes.gpu.pad_shared_tiles import PadSharedTiles
from magweld.passes.gpu.pass_tensor_maps import PassTensorMaps
from magweld.passes.gpu.pipeline_staged_copies import PipelineStagedCopies
from magweld.passes.gpu.place_shared_memory import PlaceSharedMemory
from magweld.passes.gpu.select_bulk_copies import SelectBulkCopies
from magweld.passes.gpu.select_matrix_loads import SelectMatrixLoads
from magweld.passes.gpu.select_warpgroup_products import SelectWarpgroupProducts
from magweld.passes.gpu.serialize_to_binary import SerializeToBinary
from magweld.passes.gpu.set_unit_strides import SetUnitStrides
from magweld.passes.gpu.split_rows import SplitRows
from magweld.passes.gpu.stage_in_shared_memory import StageInSharedMemory
from magweld.passes.gpu.structure import SHARED_ALIGNMENT
from magweld.passes.gpu.swizzled_tiles import SWIZZLE_ALIGNMENT
from magweld.passes.gpu.tile_reduction_steps import TileReductionSteps
from magweld.passes.gpu.unroll_register_loops import UnrollRegisterLoops
from magweld.passes.gpu.vectorize_accesses import VectorizeAccesses
from magweld.passes.infrastructure.phases import PHASES, Phase
from magweld.passes.infrastructure.pipeline import Pipeline, Step, Upstream
from magweld.passes.phase.erase_host_functions import EraseHostFunctions
from magweld.passes.tiling.matrix_units import BLOCK_THREADS
from magweld.passes.tiling.warpgroups import WARPS
from magweld.targets.target import Backend, Target

_BUFFERIZE = (
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map}"
)
_ADDRESSES = "fold-memref-alias-ops,expand-strided-metadata,canonicalize,cse"


_MATRIX = {Backend.NVVM: "mma", Backend.ROCDL: "mfma"}


@dataclass(frozen=True)
class BlockShape:
    """How many threads work on a tile, and what they may use.

    Attributes:
        threads: Threads of a block.
        subgroup: Threads that execute in lockstep.
        shared_bytes: Shared memory of a block.
        matrix: Family of its matrix instructions, "" for none.
        has_async_copies: Whether threads go on while they copy to shared memory.
        sector: Bytes of a transaction of global memory.
        has_warpgroups: Whether four subgroups compute products together.
        has_bulk_copies: Whether one thread begins the copy of a whole tile.
    """

    threads: int
    subgroup: int
    shared_bytes: int
    matrix: str = ""
    has_async_copies: bool = False
    sector: int = 32
    has_warpgroups: bool = False
    has_bulk_copies: bool = False

    @staticmethod
    def of(target: Target, threads: int = BLOCK_THREADS) -> BlockShape:
        """Return the shape for a device."""
        device = target.device
        return BlockShape(
            min(threads, device.threads),
            device.warp,
            device.level("shared").capacity,
            _MATRIX[target.backend],
            target.has_async_copies,
            device.level("global").transaction,
            target.has_warpgroups,
            target.has_bulk_copies,
        )


def block_steps(shape: BlockShape) -> tuple[Step, ...]:
    """Return the steps from tiled kernels to the gpu dialect, for any GPU."""
    groups = shape.threads // (shape.subgroup * WARPS) if shape.has_warpgroups else 0
    pipeline = (PipelineStagedCopies(shape.shared_bytes, groups),)
    warpgroups = (SelectWarpgroupProducts(shape.shared_bytes),)
    bulk = (SelectBulkCopies(shape.shared_bytes),)
    return (
        # Blocks: tiles of tensors.
        MapTilesToBlocks(),
        # Streams in registers are launches from here on.
        LowerRegisterStreams(
            shape.matrix,
            shape.has_async_copies,
            shape.has_warpgroups,
            shape.shared_bytes if shape.has_bulk_copies else 0,
        ),
        # Under a name of their own products keep plain operands, which are staged.
        NameContractions(),
        Upstream("linalg-fuse-elementwise-ops"),
        # Behind fusion, which would split dimensions again.
        JoinTileLoops(),
        MultiplyWindowPoints(shape.matrix, shape.shared_bytes),
        PadProducts(shape.matrix, shape.shared_bytes),
        TileReductionSteps(),
        Upstream("eliminate-empty-tensors,canonicalize,cse"),
        # Zeros that several sums begin from are one value until here.
        UnshareInits(),
        StageInSharedMemory(capacity=shape.shared_bytes),
        Upstream("canonicalize,cse"),
        # Tensors become buffers; results are written where they belong.
        Upstream(_BUFFERIZE),
        Upstream("drop-equivalent-buffer-results"),
        Upstream("fold-memref-alias-ops,canonicalize,cse,canonicalize"),
        CastCollapsedRows(),
        # Threads: strided slices of buffers.
        MapToMatrixInstructions(
            shape.matrix, shape.threads, shape.subgroup, shape.has_warpgroups
        ),
        SplitRows(shape.threads, shape.subgroup),
        CopyByVectors(shape.threads, shape.subgroup),
        MapTilesToThreads(shape.threads, shape.subgroup, shape.sector),
        KeepTilesInRegisters(warpgroups=shape.has_warpgroups),
        *(pipeline if shape.has_async_copies else ()),
        *(warpgroups if shape.has_warpgroups else ()),
        *(bulk if shape.has_bulk_copies else ()),
        SelectMatrixLoads(),
        PadSharedTiles(shape.subgroup),
        PlaceSharedMemory(shape.shared_bytes),
        InsertBarriers(),
        FormGpuLaunch(shape.threads, shape.subgroup),
        Upstream("canonicalize,cse"),
        # One thread: loops over its slice.
        LowerAsyncCopies(),
        LowerBulkCopies(),
        LowerMatrixInstructions(),
        LowerSubgroupReductions(shape.subgroup),
        OrderRegisterLoops(),
        Upstream("convert-linalg-to-affine-loops"),
        UnrollRegisterLoops(),
        Upstream("canonicalize,cse"),
        Upstream("gpu-launch-sink-index-computations"),
        Upstream("gpu-kernel-outlining"),
        AnnotateParameters(),
        # Arithmetic.
        Upstream("gpu.module(math-extend-to-supported-types)"),
        ContractMultiplyAdd(),
        ExpandGpuMath(),
        SetUnitStrides(),
        Upstream(f"gpu.module({_ADDRESSES},lower-affine,canonicalize,cse)"),
        # Addresses are constants or sums that are known to be aligned. Rows that loaded
        # numbers tell are one row to the second once the first has loaded these once.
        VectorizeAccesses(),
        Upstream("gpu.module(cse)"),
        VectorizeAccesses(),
        Upstream("gpu.module(canonicalize,cse)"),
    )


def nvvm_steps(
    capacity: int, shared_alignment: int = SHARED_ALIGNMENT
) -> tuple[Step, ...]:
    """Return the steps from the gpu dialect to the NVVM dialect.

    Args:
        capacity: Bytes of shared memory that a block may use.
        shared_alignment: What divides the address where shared memory begins.
    """
    return (
        Upstream("gpu.module(convert-nvgpu-to-nvvm,convert-scf-to-cf)"),
        Upstream(
            "gpu.module(convert-gpu-to-nvvm{index-bitwidth=64 "
            "use-bare-ptr-memref-call-conv=1})"
        ),
        AllowRegisters(capacity),
        PassTensorMaps(),
        Upstream("gpu.module(convert-nvvm-to-llvm,convert-to-llvm)"),
        Upstream("gpu.module(reconcile-unrealized-casts,canonicalize,cse)"),
        DeclareSharedMemory(shared_alignment),
        LaunchMembers(),
        JoinLaunches(),
    )


def rocdl_steps(chip: str) -> tuple[Step, ...]:
    """Return the steps from the gpu dialect to the ROCDL dialect."""
    return (
        Upstream("gpu.module(convert-scf-to-cf)"),
        Upstream(
            f"gpu.module(convert-gpu-to-rocdl{{chipset={chip} index-bitwidth=64 "
            "runtime=HIP use-bare-ptr-memref-call-conv=1})"
        ),
        Upstream("gpu.module(convert-to-llvm)"),
        Upstream("gpu.module(reconcile-unrealized-casts,canonicalize,cse)"),
        DeclareSharedMemory(),
        LaunchMembers(),
        JoinLaunches(),
    )


_LOWERINGS: dict[Backend, Callable[[Target], tuple[Step, ...]]] = {
    Backend.NVVM: lambda target: nvvm_steps(
        target.device.level("shared").capacity,
        SWIZZLE_ALIGNMENT if target.has_warpgroups else SHARED_ALIGNMENT,
    ),
    Backend.ROCDL: lambda target: rocdl_steps(target.chip),
}


def gpu_phase_steps(target: Target) -> dict[Phase, tuple[Step, ...]]:
    """Return the steps to each phase from tiled kernels to `gpu.binary`.

    Raises:
        ValueError: The target is no GPU.
    """
    if target.backend not in _LOWERINGS:
        raise ValueError(f"expected the target to be a GPU, got '{target}'")
    *_, lowered, _ = PHASES[target.backend]
    return {
        Phase.GPU: (EraseHostFunctions(), *block_steps(BlockShape.of(target))),
        lowered: _LOWERINGS[target.backend](target),
        Phase.BINARY: (SerializeToBinary(str(target)),),
    }


def gpu_steps(target: Target) -> tuple[Step, ...]:
    """Return `gpu_phase_steps` as one list.

    Raises:
        ValueError: The target is no GPU.
    """
    return tuple(chain.from_iterable(gpu_phase_steps(target).values()))


def gpu_pipeline(target: Target) -> Pipeline:
    """Return `gpu_steps` as a pipeline."""
    return Pipeline(gpu_steps(target))
