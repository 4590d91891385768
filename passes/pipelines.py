"""Owns the compiler as one straight list of steps for each part of the way."""

from __future__ import annotations

from magweld.passes.graph.absorb_broadcast import AbsorbBroadcast
from magweld.passes.graph.absorb_transpose import AbsorbTranspose
from magweld.passes.graph.absorb_unit_dims import AbsorbUnitDims
from magweld.passes.graph.defer_normalization import DeferNormalization
from magweld.passes.graph.fold_transpose import FoldTranspose
from magweld.passes.graph.form_tile_graph import FormTileGraph
from magweld.passes.graph.hoist_collapse import HoistCollapse
from magweld.passes.graph.hoist_expand import HoistExpand
from magweld.passes.graph.hoist_slice import HoistSlice
from magweld.passes.graph.hoist_stride import HoistStride
from magweld.passes.graph.lower_subgraphs import LowerSubgraphs
from magweld.passes.graph.lower_torch_to_linalg import LowerTorchToLinalg
from magweld.passes.graph.plan_execution import PlanExecution
from magweld.passes.graph.plan_memory import PlanMemory
from magweld.passes.graph.select_implementation import LibraryUse, SelectImplementation
from magweld.passes.graph.select_winograd import SelectWinograd
from magweld.passes.graph.simplify_generic import SimplifyGeneric
from magweld.passes.graph.split_reductions import SplitReductions
from magweld.passes.graph.transform_weights import TransformWeights
from magweld.passes.graph.unflatten_batch_matmul import UnflattenBatchMatmul
from magweld.passes.memory.fit_memory import FitMemory
from magweld.passes.memory.outline_memory_tiles import OutlineMemoryTiles
from magweld.passes.phases import Phase
from magweld.passes.pipeline import Pipeline, Step, Upstream
from magweld.passes.tile.apply_plans import ApplyPlans
from magweld.passes.tile.connect_operators import ConnectOperators
from magweld.passes.tile.extract_subgraphs import ExtractSubgraphs
from magweld.passes.tile.merger import Fusion
from magweld.passes.tile.propagate_tiles import PropagateTiles
from magweld.passes.tile.select_tiles import SelectTiles


def graph_steps(
    device: str,
    library: LibraryUse = "auto",
    fusion: Fusion = "all",
    memory_budget: int = 0,
) -> dict[Phase, tuple[Step, ...]]:
    """Return the steps to each phase from the torch dialect to tiled kernels.

    Args:
        device: Name of a device description.
        library: Whether library calls may compute operators.
        fusion: Which operators may share a kernel.
        memory_budget: Bytes for all tensors but arguments and results; 0 is no limit.
    """
    form = FormTileGraph(device)
    # What is made tile by tile becomes functions of its own, which are graphs then.
    outline = (OutlineMemoryTiles(), form) if memory_budget else ()
    # Libraries take memory of their own.
    fit = (SelectImplementation(library), FitMemory(memory_budget))
    return {
        Phase.LINALG: (
            LowerTorchToLinalg(),
            SimplifyGeneric(),
            # Reshapes and transposes hide producers from consumers: read through them.
            UnflattenBatchMatmul(),
            Upstream("canonicalize,cse"),
            HoistStride(),
            HoistSlice(),
            FoldTranspose(),
            AbsorbBroadcast(),
            AbsorbTranspose(),
            AbsorbUnitDims(),
            HoistCollapse(),
            HoistExpand(),
            DeferNormalization(),
            Upstream("canonicalize,cse"),
        ),
        # With a budget reductions stay whole: tensors are what is made in parts then,
        # and transformed weights take memory of their own.
        Phase.TILE_GRAPH: (form, *fit)
        if memory_budget
        else (SplitReductions(device, library), form, SelectWinograd()),
        Phase.SCHEDULED: (
            *outline,
            ApplyPlans(fusion),
            SelectImplementation(library),
            ConnectOperators(fusion),
            ExtractSubgraphs(),
            SelectTiles(),
            PropagateTiles(),
        ),
        Phase.PLANNED: (PlanExecution(),),
        Phase.TILED: (LowerSubgraphs(), TransformWeights(), PlanMemory()),
    }


def graph_pipeline(
    device: str,
    library: LibraryUse = "auto",
    until: Phase = Phase.TILED,
    *,
    fusion: Fusion = "all",
    after: Phase | None = None,
    memory_budget: int = 0,
) -> Pipeline:
    """Return the steps of `graph_steps` behind a phase, up to and with another one."""
    steps = graph_steps(device, library, fusion, memory_budget)
    phases = [
        phase
        for phase in steps
        if not until.is_before(phase) and (after is None or after.is_before(phase))
    ]
    return Pipeline(tuple(step for phase in phases for step in steps[phase]))
