"""Owns the straight list of steps from tiled kernels to the LLVM dialect on x86."""

from __future__ import annotations

from itertools import chain

from magweld.passes.cpu.annotate_kernels import AnnotateKernels
from magweld.passes.cpu.bfloat_to_integer import BfloatToInteger
from magweld.passes.cpu.block_reductions import BlockReductions
from magweld.passes.cpu.expand_bfloat import ExpandBfloat
from magweld.passes.cpu.expand_math import ExpandMath
from magweld.passes.cpu.expand_winograd import ExpandWinograd
from magweld.passes.cpu.fuse_epilogues import FuseEpilogues
from magweld.passes.cpu.fuse_window_copies import FuseWindowCopies
from magweld.passes.cpu.generalize_copies import GeneralizeCopies
from magweld.passes.cpu.generalize_operations import GeneralizeOperations
from magweld.passes.cpu.hoist_invariants import HoistInvariants
from magweld.passes.cpu.hoist_pad_fill import HoistPadFill
from magweld.passes.cpu.linearize_conv_rows import LinearizeConvRows
from magweld.passes.cpu.mark_readonly import MarkReadonly
from magweld.passes.cpu.outline_tile_range import OutlineTileRange
from magweld.passes.cpu.place_allocations import PlaceAllocations
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.cpu.stage_results import StageResults
from magweld.passes.cpu.strip_argument_sizes import StripArgumentSizes
from magweld.passes.cpu.tile_for_registers import TileForRegisters
from magweld.passes.cpu.unshare_inits import UnshareInits
from magweld.passes.cpu.vectorize import Vectorize
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Pipeline, Step, Upstream
from magweld.passes.phase.erase_host_functions import EraseHostFunctions

DEFAULT_UNIT = VectorUnit()

_BUFFERIZE = (
    "one-shot-bufferize{allow-return-allocs-from-loops=1 "
    "bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map}"
)


def cpu_phase_steps(
    unit: VectorUnit = DEFAULT_UNIT,
) -> dict[Phase, tuple[Step, ...]]:
    """Return the steps to each phase from tiled kernels to the LLVM dialect.

    Args:
        unit: Vector registers of the CPU that the code will run on.
    """
    return {
        Phase.BUFFERIZED: _bufferized_steps(),
        Phase.VECTORIZED: _vectorized_steps(unit),
        Phase.LLVM: _llvm_steps(),
    }


def _bufferized_steps() -> tuple[Step, ...]:
    return (
        EraseHostFunctions(),
        # The plan says what is one loop nest; windows keep their names.
        GeneralizeOperations(),
        Upstream("canonicalize,cse"),
        # Tensors become buffers; results are written where they belong.
        MarkReadonly(),
        UnshareInits(),
        Upstream("eliminate-empty-tensors"),
        Upstream(_BUFFERIZE),
        Upstream("canonicalize,cse"),
        StageResults(),
        OutlineTileRange(),
    )


def _vectorized_steps(unit: VectorUnit) -> tuple[Step, ...]:
    return (
        # What bufferisation left in other forms becomes linalg.generic or arith.
        Upstream("lower-affine"),
        ExpandWinograd(),
        # Loops of one iteration part what is fused below.
        Upstream("canonicalize,cse"),
        Upstream("linalg-generalize-named-ops"),
        LinearizeConvRows(unit.bits, unit.registers, unit.pairs),
        BlockReductions(),
        GeneralizeCopies(),
        HoistPadFill(),
        HoistInvariants(),
        # Registers.
        FuseEpilogues(unit.bits, unit.registers, unit.pairs),
        FuseWindowCopies(),
        TileForRegisters(unit.bits, unit.registers, unit.pairs),
        Vectorize(unit.bits, unit.registers, unit.pairs),
        Upstream("convert-linalg-to-loops"),
        PlaceAllocations(),
        Upstream("canonicalize,cse"),
        # Arithmetic.
        Upstream("math-extend-to-supported-types"),
        ExpandMath(unit.bits, unit.registers, unit.pairs),
        # bfloat is a format of memory: LLVM would call a library to round to it, and
        # move its vectors element by element.
        Upstream("arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}"),
        ExpandBfloat(unit.bits, unit.registers, unit.pairs),
        Upstream("arith-expand"),
        BfloatToInteger(),
        AnnotateKernels(unit.bits),
    )


def _llvm_steps() -> tuple[Step, ...]:
    return (
        Upstream("scf-forall-to-for"),
        StripArgumentSizes(),
        Upstream("expand-strided-metadata,lower-affine"),
        Upstream("convert-scf-to-cf"),
        Upstream("convert-vector-to-llvm"),
        Upstream("convert-math-to-llvm,convert-math-to-libm"),
        Upstream("finalize-memref-to-llvm"),
        Upstream("convert-func-to-llvm{use-bare-ptr-memref-call-conv=1}"),
        Upstream("convert-to-llvm,reconcile-unrealized-casts"),
        Upstream("canonicalize,cse"),
    )


def cpu_steps(unit: VectorUnit = DEFAULT_UNIT) -> tuple[Step, ...]:
    """Return `cpu_phase_steps` as one list."""
    return tuple(chain.from_iterable(cpu_phase_steps(unit).values()))


def cpu_pipeline(unit: VectorUnit = DEFAULT_UNIT) -> Pipeline:
    """Return `cpu_steps` as a pipeline."""
    return Pipeline(cpu_steps(unit))
