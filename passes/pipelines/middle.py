"""Owns the compiler as one straight list of steps for each part of the way."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from magweld.diagnostics import UnsupportedError
from magweld.passes.graph.absorb_broadcast import AbsorbBroadcast
from magweld.passes.graph.absorb_transpose import AbsorbTranspose
from magweld.passes.graph.absorb_unit_dims import AbsorbUnitDims
from magweld.passes.graph.absorb_widening import AbsorbWidening
from magweld.passes.graph.convert_pointwise_convolutions import (
    ConvertPointwiseConvolutions,
)
from magweld.passes.graph.defer_normalization import DeferNormalization
from magweld.passes.graph.expand_bags import ExpandBags
from magweld.passes.graph.fold_slices import FoldSlices
from magweld.passes.graph.fold_transpose import FoldTranspose
from magweld.passes.graph.generalize_pads import GeneralizePads
from magweld.passes.graph.generalize_slices import GeneralizeSlices
from magweld.passes.graph.hoist_collapse import HoistCollapse
from magweld.passes.graph.hoist_expand import HoistExpand
from magweld.passes.graph.hoist_slice import HoistSlice
from magweld.passes.graph.hoist_stride import HoistStride
from magweld.passes.graph.interchange_short_reductions import (
    InterchangeShortReductions,
)
from magweld.passes.graph.join_runtime_loops import JoinRuntimeLoops
from magweld.passes.graph.lower_torch_to_linalg import LowerTorchToLinalg
from magweld.passes.graph.narrow_windows import NarrowWindows
from magweld.passes.graph.outline_control import OutlineControl
from magweld.passes.graph.pack_strided_operands import PackStridedOperands
from magweld.passes.graph.roll_loops import RollLoops
from magweld.passes.graph.select_winograd import SelectWinograd
from magweld.passes.graph.simplify_generic import SimplifyGeneric
from magweld.passes.graph.sink_collapse import SinkCollapse
from magweld.passes.graph.sink_concat import SinkConcat
from magweld.passes.graph.sink_expand import SinkExpand
from magweld.passes.graph.transform_weights import TransformWeights
from magweld.passes.graph.unflatten_batch_matmul import UnflattenBatchMatmul
from magweld.passes.graph.unfold_windows import UnfoldWindows
from magweld.passes.infrastructure.base import NamedPipeline
from magweld.passes.infrastructure.phases import PHASES, Phase
from magweld.passes.infrastructure.pipeline import Pipeline, Step, Upstream
from magweld.passes.memory.fit_memory import FitMemory
from magweld.passes.memory.outline_memory_tiles import OutlineMemoryTiles
from magweld.passes.memory.plan_memory import PlanMemory
from magweld.passes.phase.verify_phase import VerifyPhase
from magweld.passes.plan.batch_kernels import BatchKernels
from magweld.passes.plan.co_schedule_kernels import CoScheduleKernels
from magweld.passes.plan.lower_subgraphs import LowerSubgraphs
from magweld.passes.plan.plan_execution import PlanExecution
from magweld.passes.tile.apply_plans import ApplyPlans
from magweld.passes.tile.connect_operators import ConnectOperators
from magweld.passes.tile.extract_subgraphs import ExtractSubgraphs
from magweld.passes.tile.form_tile_graph import FormTileGraph
from magweld.passes.tile.merger import Fusion
from magweld.passes.tile.propagate_tiles import PropagateTiles
from magweld.passes.tile.select_copy_stages import SelectCopyStages
from magweld.passes.tile.select_implementation import LibraryUse, SelectImplementation
from magweld.passes.tile.select_libraries import SelectLibraries
from magweld.passes.tile.select_nontemporal_stores import SelectNontemporalStores
from magweld.passes.tile.select_tiles import SelectTiles
from magweld.passes.tile.shift_slices import ShiftSlices
from magweld.passes.tile.split_reductions import SplitReductions
from magweld.targets.target import Backend, Target, parse_target
from magweld.targets.target import device as named_device


def preparation_steps(
    *, roll_loops: bool = False, memory_budget: int = 0, shares_tiles: bool = False
) -> tuple[Step, ...]:
    """Return the steps that bring linalg into the form that tile graphs are made of.

    Args:
        roll_loops: Whether alike iterations become loops.
        memory_budget: Bytes for all tensors but arguments and results; 0 is no limit.
        shares_tiles: Whether threads of the device share a tile, as those of GPUs do.
    """
    # A budget wants to see every tensor of a call, and concatenations in one piece:
    # more tensors are alive at one time where each operand is computed on.
    roll = (RollLoops(),) if roll_loops and not memory_budget else ()
    sink = () if memory_budget else (SinkConcat(),)
    # Products of halves lie between reshapes of halves there.
    widened = (AbsorbWidening(),) if shares_tiles else ()
    # What follows a product there is its epilogue, whatever reads the result.
    sink_behind = (SinkExpand(), HoistCollapse()) if shares_tiles else ()
    return (
        OutlineControl(),
        SimplifyGeneric(),
        *widened,
        # Reshapes and transposes hide producers from consumers: read through them.
        UnflattenBatchMatmul(),
        JoinRuntimeLoops(),
        Upstream("canonicalize,cse"),
        *roll,
        *sink,
        AbsorbWidening(),
        HoistStride(),
        HoistSlice(),
        FoldTranspose(),
        AbsorbBroadcast(),
        AbsorbTranspose(),
        AbsorbUnitDims(),
        HoistCollapse(),
        SinkCollapse(),
        HoistExpand(),
        *sink_behind,
        FoldSlices(),
        DeferNormalization(rounded=shares_tiles),
        Upstream("canonicalize,cse"),
    )


def form_steps(*, shares_tiles: bool, memory_budget: int = 0) -> tuple[Step, ...]:
    """Return the steps behind these, which give operators the form that is planned.

    Args:
        shares_tiles: Whether threads of the device share a tile, as those of GPUs do.
        memory_budget: As of `preparation_steps`.
    """
    if shares_tiles:
        products = ConvertPointwiseConvolutions(), NarrowWindows()
        return *products, GeneralizePads(), GeneralizeSlices()
    # Windows side by side are a tensor more.
    unfold = () if memory_budget else (UnfoldWindows(),)
    # Vectors run along the innermost loop of a result.
    vectors = InterchangeShortReductions(), PackStridedOperands()
    # Vectors copy windows of a border that is there.
    return *unfold, *vectors, GeneralizePads(keep_copied=True)


def graph_steps(
    device: str,
    library: LibraryUse = "auto",
    fusion: Fusion = "all",
    memory_budget: int = 0,
    roll_loops: bool = True,
    batch: BatchKernels | None = None,
    target: Target | None = None,
) -> dict[Phase, tuple[Step, ...]]:
    """Return the steps to each phase from the torch dialect to tiled kernels.

    Args:
        device: Name of a device description.
        library: Whether library calls may compute operators.
        fusion: Which operators may share a kernel.
        memory_budget: Bytes for all tensors but arguments and results; 0 is no limit.
        roll_loops: Whether alike iterations become loops.
        batch: How independent calls of one kernel become one launch; None for not.
        target: What code is made for; None for the host.
    """
    target = target or parse_target("cpu")
    # Together, members keep all that they make at one time.
    batches: tuple[Step, ...] = ()
    shift: tuple[Step, ...] = ()
    if batch and not memory_budget:
        batch = replace(batch, launch_bytes=target.launch_bytes)
        batches = (batch, _co_schedule(batch, device))
        shift = (ShiftSlices(target.pointer_alignment),)
    form = FormTileGraph(device)
    # What is made tile by tile becomes functions of its own, which are graphs then.
    outline = (OutlineMemoryTiles(), form) if memory_budget else ()
    shares_tiles = named_device(device).threads > 1
    select_libraries: tuple[Step, ...] = ()
    if shares_tiles:
        select_libraries = (SelectLibraries(library, fusion, batch=bool(batches)),)
    # Libraries take memory of their own.
    fit = (SelectImplementation(library), FitMemory(memory_budget))
    prepare = (
        *preparation_steps(
            roll_loops=roll_loops,
            memory_budget=memory_budget,
            shares_tiles=shares_tiles,
        ),
        *form_steps(shares_tiles=shares_tiles, memory_budget=memory_budget),
    )
    return {
        Phase.LINALG: (LowerTorchToLinalg(), ExpandBags()),
        # With a budget reductions stay whole: tensors are what is made in parts then,
        # and transformed weights take memory of their own.
        Phase.TILE_GRAPH: (*prepare, form, *fit)
        if memory_budget
        else (*prepare, SplitReductions(device, library), form, SelectWinograd()),
        Phase.SCHEDULED: (
            *outline,
            ApplyPlans(fusion),
            SelectImplementation(library),
            *select_libraries,
            ConnectOperators(fusion, batch=bool(batches)),
            ExtractSubgraphs(),
            *shift,
            SelectTiles(),
            PropagateTiles(),
            SelectNontemporalStores(),
            *((SelectCopyStages(),) if target.has_async_copies else ()),
        ),
        Phase.PLANNED: (PlanExecution(),),
        Phase.TILED: (
            LowerSubgraphs(),
            TransformWeights(),
            *batches,
            PlanMemory(),
        ),
    }


def _co_schedule(batch: BatchKernels, device: str) -> CoScheduleKernels:
    """Return how kernels run side by side, within the bounds and rules of batches."""
    return CoScheduleKernels(
        *(device, batch.minimum, batch.maximum, batch.depth),
        rules=batch.rules,
        launch_bytes=batch.launch_bytes,
    )


def graph_pipeline(
    device: str,
    library: LibraryUse = "auto",
    until: Phase = Phase.TILED,
    *,
    fusion: Fusion = "all",
    after: Phase | None = None,
    memory_budget: int = 0,
    roll_loops: bool = True,
    batch: BatchKernels | None = None,
    target: Target | None = None,
) -> Pipeline:
    """Return the steps of `graph_steps` behind a phase, up to and with another one."""
    steps = graph_steps(
        device, library, fusion, memory_budget, roll_loops, batch, target
    )
    return Pipeline(steps_between(steps, after, until))


def steps_between(
    steps: Mapping[Phase, tuple[Step, ...]], after: Phase | None, until: Phase
) -> tuple[Step, ...]:
    """Return the steps behind a phase, or all for None, up to and with another one."""
    phases = [
        phase
        for phase in steps
        if not until.is_before(phase) and (after is None or after.is_before(phase))
    ]
    return tuple(step for phase in phases for step in steps[phase])


@dataclass(frozen=True)
class _PhasePipeline(NamedPipeline):
    """A pipeline from one phase to another.

    Attributes:
        kind: What the target has to be, for messages.
    """

    kind: ClassVar[str]

    compile_from: Annotated[Phase, "phase of the module"] = Phase.LINALG
    compile_to: Annotated[Phase, "phase to stop at"] = Phase.TILED
    device: Annotated[str, "device to plan for; by default that of the target"] = ""
    library: Annotated[LibraryUse, "whether library calls may compute operators"] = (
        "auto"
    )
    fusion: Annotated[Fusion, "which operators may share a kernel"] = "all"
    memory_budget: Annotated[int, "bytes for intermediate tensors, 0 for no limit"] = 0
    roll_loops: Annotated[bool, "whether alike iterations become loops"] = True
    batch: Annotated[bool, "whether equal independent kernels are one launch"] = True
    batch_minimum: Annotated[int, "fewest members of a batch"] = 2
    batch_maximum: Annotated[int, "most members of a batch, 0 for no limit"] = 0
    batch_depth: Annotated[int, "most levels between members, 0 for no limit"] = 0
    batch_rules: Annotated[tuple[str, ...], "rules that keep members apart"] = ()

    @property
    @abstractmethod
    def compiled_target(self) -> Target:
        """What code is made for."""

    @abstractmethod
    def code_steps(self) -> dict[Phase, tuple[Step, ...]]:
        """Return the steps to each phase behind that of tiled kernels."""

    def phases(self) -> tuple[Phase, ...]:
        """Return the phases of the target that are phases of a module."""
        way = PHASES[self.compiled_target.backend]
        return tuple(phase for phase in way if phase is not Phase.OBJECT)

    def _batches(self) -> BatchKernels:
        return BatchKernels(
            minimum=self.batch_minimum,
            maximum=self.batch_maximum,
            depth=self.batch_depth,
            rules=self.batch_rules,
        )

    def __post_init__(self) -> None:
        self._batches()  # its check of the options
        known = self.phases()
        for phase in (self.compile_from, self.compile_to):
            if phase is Phase.OBJECT and self.kind == "a CPU":
                raise ValueError(
                    "an object file is no module; magweld-opt --compile-to=object "
                    f"writes one from phase '{Phase.LLVM}'"
                )
            if phase not in known:
                raise ValueError(
                    f"phase '{phase}' is not one of target '{self.compiled_target}'; "
                    f"known: {', '.join(known)}"
                )
        if self.compile_to.is_before(self.compile_from):
            raise ValueError(
                f"phase '{self.compile_to}' is before phase '{self.compile_from}'"
            )

    def steps(self) -> tuple[Step, ...]:
        """Return the steps from the one phase to the other, behind its check."""
        device = self.device or self.compiled_target.reference
        graph = graph_steps(
            device,
            self.library,
            self.fusion,
            self.memory_budget,
            self.roll_loops,
            self._batches() if self.batch else None,
            self.compiled_target,
        )
        after, until = self.compile_from, self.compile_to
        code = self.code_steps() if Phase.TILED.is_before(until) else {}
        return (VerifyPhase(after), *steps_between({**graph, **code}, after, until))


@dataclass(frozen=True)
class CpuPipeline(_PhasePipeline):
    """Compile a module for a CPU, from a phase to another one."""

    name: ClassVar[str] = "magweld-cpu"
    kind: ClassVar[str] = "a CPU"

    vector_bits: Annotated[int, "width of a vector register, 0 for this machine's"] = 0
    vector_registers: Annotated[int, "vector registers, 0 for this machine's"] = 0
    bf16_pairs: Annotated[
        bool, "whether pairs of bf16 are multiplied, as on this machine if it can"
    ] = False

    @property
    def compiled_target(self) -> Target:
        """The host."""
        return parse_target("cpu")

    def code_steps(self) -> dict[Phase, tuple[Step, ...]]:
        """Return the steps from tiled kernels to the LLVM dialect."""
        # Only here, as LLVM takes a while to load.
        from magweld.codegen.host import HostTarget
        from magweld.passes.cpu.register_tile import VectorUnit
        from magweld.passes.pipelines.cpu import cpu_phase_steps

        bits, registers = self.vector_bits, self.vector_registers
        pairs = self.bf16_pairs
        if not (bits and registers):
            host = HostTarget.detect()
            bits = bits or host.vector_bits
            registers = registers or host.vector_registers
            pairs = pairs or (bits == host.vector_bits and host.multiplies_pairs)
        return cpu_phase_steps(VectorUnit(bits, registers, pairs))


@dataclass(frozen=True)
class GpuPipeline(_PhasePipeline):
    """Compile a module for a GPU, from a phase to another one.

    Its programs have no loops, and plans that are looked at are of generated code:
    `roll-loops` is false and `library` is `never` unless they are given.
    """

    name: ClassVar[str] = "magweld-gpu"
    kind: ClassVar[str] = "a GPU"

    library: Annotated[LibraryUse, "whether library calls may compute operators"] = (
        "never"
    )
    roll_loops: Annotated[bool, "whether alike iterations become loops"] = False
    target: Annotated[str, "nvvm:sm_80, rocdl:gfx942, ..."] = "nvvm:sm_80"

    @property
    def compiled_target(self) -> Target:
        """The GPU.

        Raises:
            ValueError: The target is no GPU, or unknown.
        """
        try:
            target = parse_target(self.target)
        except UnsupportedError as error:
            raise ValueError(str(error)) from error
        if target.backend is Backend.CPU:
            raise ValueError(f"expected the target to be a GPU, got '{target}'")
        return target

    def code_steps(self) -> dict[Phase, tuple[Step, ...]]:
        """Return the steps from tiled kernels to `gpu.binary`."""
        # Only here: a compilation for a CPU needs none of it.
        from magweld.passes.pipelines.gpu import gpu_phase_steps

        return gpu_phase_steps(self.compiled_target)
