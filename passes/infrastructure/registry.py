"""Owns the table of magweld's passes by name; classes are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from magweld.passes.infrastructure.base import NamedPipeline, Pass

# One line a pass: `name` is its name in pipelines, of its module and its lit file.
_PASSES: tuple[tuple[str, str], ...] = (
    ("absorb-broadcast", "magweld.passes.graph.absorb_broadcast:AbsorbBroadcast"),
    ("absorb-transpose", "magweld.passes.graph.absorb_transpose:AbsorbTranspose"),
    ("absorb-unit-dims", "magweld.passes.graph.absorb_unit_dims:AbsorbUnitDims"),
    ("absorb-widening", "magweld.passes.graph.absorb_widening:AbsorbWidening"),
    ("annotate-kernels", "magweld.passes.cpu.annotate_kernels:AnnotateKernels"),
    ("apply-plans", "magweld.passes.tile.apply_plans:ApplyPlans"),
    ("bfloat-to-integer", "magweld.passes.cpu.bfloat_to_integer:BfloatToInteger"),
    ("block-reductions", "magweld.passes.cpu.block_reductions:BlockReductions"),
    ("connect-operators", "magweld.passes.tile.connect_operators:ConnectOperators"),
    (
        "defer-normalization",
        "magweld.passes.graph.defer_normalization:DeferNormalization",
    ),
    (
        "convert-pointwise-convolutions",
        "magweld.passes.graph.convert_pointwise_convolutions:"
        "ConvertPointwiseConvolutions",
    ),
    ("expand-winograd", "magweld.passes.cpu.expand_winograd:ExpandWinograd"),
    ("expand-math", "magweld.passes.cpu.expand_math:ExpandMath"),
    ("extract-subgraphs", "magweld.passes.tile.extract_subgraphs:ExtractSubgraphs"),
    ("hoist-invariants", "magweld.passes.cpu.hoist_invariants:HoistInvariants"),
    ("hoist-pad-fill", "magweld.passes.cpu.hoist_pad_fill:HoistPadFill"),
    ("fit-memory", "magweld.passes.memory.fit_memory:FitMemory"),
    ("fold-slices", "magweld.passes.graph.fold_slices:FoldSlices"),
    ("fold-transpose", "magweld.passes.graph.fold_transpose:FoldTranspose"),
    ("form-tile-graph", "magweld.passes.tile.form_tile_graph:FormTileGraph"),
    ("generalize-copies", "magweld.passes.cpu.generalize_copies:GeneralizeCopies"),
    (
        "generalize-operations",
        "magweld.passes.cpu.generalize_operations:GeneralizeOperations",
    ),
    ("generalize-pads", "magweld.passes.graph.generalize_pads:GeneralizePads"),
    ("generalize-slices", "magweld.passes.graph.generalize_slices:GeneralizeSlices"),
    ("hoist-collapse", "magweld.passes.graph.hoist_collapse:HoistCollapse"),
    ("hoist-expand", "magweld.passes.graph.hoist_expand:HoistExpand"),
    ("hoist-slice", "magweld.passes.graph.hoist_slice:HoistSlice"),
    ("hoist-stride", "magweld.passes.graph.hoist_stride:HoistStride"),
    ("fuse-window-copies", "magweld.passes.cpu.fuse_window_copies:FuseWindowCopies"),
    ("fuse-epilogues", "magweld.passes.cpu.fuse_epilogues:FuseEpilogues"),
    (
        "interchange-short-reductions",
        "magweld.passes.graph.interchange_short_reductions:InterchangeShortReductions",
    ),
    ("linearize-conv-rows", "magweld.passes.cpu.linearize_conv_rows:LinearizeConvRows"),
    ("expand-bags", "magweld.passes.graph.expand_bags:ExpandBags"),
    ("expand-bfloat", "magweld.passes.cpu.expand_bfloat:ExpandBfloat"),
    ("batch-kernels", "magweld.passes.plan.batch_kernels:BatchKernels"),
    (
        "co-schedule-kernels",
        "magweld.passes.plan.co_schedule_kernels:CoScheduleKernels",
    ),
    ("narrow-windows", "magweld.passes.graph.narrow_windows:NarrowWindows"),
    ("join-runtime-loops", "magweld.passes.graph.join_runtime_loops:JoinRuntimeLoops"),
    ("lower-subgraphs", "magweld.passes.plan.lower_subgraphs:LowerSubgraphs"),
    (
        "lower-torch-to-linalg",
        "magweld.passes.graph.lower_torch_to_linalg:LowerTorchToLinalg",
    ),
    (
        "pack-strided-operands",
        "magweld.passes.graph.pack_strided_operands:PackStridedOperands",
    ),
    ("propagate-tiles", "magweld.passes.tile.propagate_tiles:PropagateTiles"),
    ("name-contractions", "magweld.passes.cpu.name_contractions:NameContractions"),
    (
        "outline-memory-tiles",
        "magweld.passes.memory.outline_memory_tiles:OutlineMemoryTiles",
    ),
    ("outline-tile-range", "magweld.passes.cpu.outline_tile_range:OutlineTileRange"),
    ("place-allocations", "magweld.passes.cpu.place_allocations:PlaceAllocations"),
    ("plan-execution", "magweld.passes.plan.plan_execution:PlanExecution"),
    ("plan-memory", "magweld.passes.memory.plan_memory:PlanMemory"),
    ("outline-control", "magweld.passes.graph.outline_control:OutlineControl"),
    ("roll-loops", "magweld.passes.graph.roll_loops:RollLoops"),
    (
        "select-implementation",
        "magweld.passes.tile.select_implementation:SelectImplementation",
    ),
    ("select-libraries", "magweld.passes.tile.select_libraries:SelectLibraries"),
    ("select-winograd", "magweld.passes.graph.select_winograd:SelectWinograd"),
    (
        "transform-weights",
        "magweld.passes.graph.transform_weights:TransformWeights",
    ),
    (
        "select-copy-stages",
        "magweld.passes.tile.select_copy_stages:SelectCopyStages",
    ),
    (
        "select-nontemporal-stores",
        "magweld.passes.tile.select_nontemporal_stores:SelectNontemporalStores",
    ),
    ("select-tiles", "magweld.passes.tile.select_tiles:SelectTiles"),
    ("shift-slices", "magweld.passes.tile.shift_slices:ShiftSlices"),
    ("simplify-generic", "magweld.passes.graph.simplify_generic:SimplifyGeneric"),
    ("stage-results", "magweld.passes.cpu.stage_results:StageResults"),
    (
        "strip-argument-sizes",
        "magweld.passes.cpu.strip_argument_sizes:StripArgumentSizes",
    ),
    ("tile-for-registers", "magweld.passes.cpu.tile_for_registers:TileForRegisters"),
    ("sink-collapse", "magweld.passes.graph.sink_collapse:SinkCollapse"),
    ("sink-concat", "magweld.passes.graph.sink_concat:SinkConcat"),
    ("sink-expand", "magweld.passes.graph.sink_expand:SinkExpand"),
    ("split-reductions", "magweld.passes.tile.split_reductions:SplitReductions"),
    (
        "unflatten-batch-matmul",
        "magweld.passes.graph.unflatten_batch_matmul:UnflattenBatchMatmul",
    ),
    ("unfold-windows", "magweld.passes.graph.unfold_windows:UnfoldWindows"),
    ("vectorize", "magweld.passes.cpu.vectorize:Vectorize"),
    ("allow-registers", "magweld.passes.gpu.allow_registers:AllowRegisters"),
    (
        "annotate-parameters",
        "magweld.passes.gpu.annotate_parameters:AnnotateParameters",
    ),
    (
        "cast-collapsed-rows",
        "magweld.passes.gpu.cast_collapsed_rows:CastCollapsedRows",
    ),
    (
        "contract-multiply-add",
        "magweld.passes.gpu.contract_multiply_add:ContractMultiplyAdd",
    ),
    ("copy-by-vectors", "magweld.passes.gpu.copy_by_vectors:CopyByVectors"),
    (
        "declare-shared-memory",
        "magweld.passes.gpu.declare_shared_memory:DeclareSharedMemory",
    ),
    ("expand-gpu-math", "magweld.passes.gpu.expand_gpu_math:ExpandGpuMath"),
    ("form-gpu-launch", "magweld.passes.gpu.form_gpu_launch:FormGpuLaunch"),
    ("insert-barriers", "magweld.passes.gpu.insert_barriers:InsertBarriers"),
    ("join-tile-loops", "magweld.passes.gpu.join_tile_loops:JoinTileLoops"),
    (
        "multiply-window-points",
        "magweld.passes.gpu.multiply_window_points:MultiplyWindowPoints",
    ),
    ("pad-products", "magweld.passes.gpu.pad_products:PadProducts"),
    (
        "keep-tiles-in-registers",
        "magweld.passes.gpu.keep_tiles_in_registers:KeepTilesInRegisters",
    ),
    (
        "lower-async-copies",
        "magweld.passes.gpu.lower_async_copies:LowerAsyncCopies",
    ),
    (
        "lower-bulk-copies",
        "magweld.passes.gpu.lower_bulk_copies:LowerBulkCopies",
    ),
    (
        "lower-matrix-instructions",
        "magweld.passes.gpu.lower_matrix_instructions:LowerMatrixInstructions",
    ),
    (
        "lower-register-streams",
        "magweld.passes.gpu.lower_register_streams:LowerRegisterStreams",
    ),
    (
        "lower-subgroup-reductions",
        "magweld.passes.gpu.lower_subgroup_reductions:LowerSubgroupReductions",
    ),
    ("join-launches", "magweld.passes.gpu.join_launches:JoinLaunches"),
    ("launch-members", "magweld.passes.gpu.launch_members:LaunchMembers"),
    ("map-tiles-to-blocks", "magweld.passes.gpu.map_tiles_to_blocks:MapTilesToBlocks"),
    (
        "map-tiles-to-threads",
        "magweld.passes.gpu.map_tiles_to_threads:MapTilesToThreads",
    ),
    (
        "map-to-matrix-instructions",
        "magweld.passes.gpu.map_to_matrix_instructions:MapToMatrixInstructions",
    ),
    (
        "order-register-loops",
        "magweld.passes.gpu.order_register_loops:OrderRegisterLoops",
    ),
    ("pad-shared-tiles", "magweld.passes.gpu.pad_shared_tiles:PadSharedTiles"),
    (
        "pipeline-staged-copies",
        "magweld.passes.gpu.pipeline_staged_copies:PipelineStagedCopies",
    ),
    ("place-shared-memory", "magweld.passes.gpu.place_shared_memory:PlaceSharedMemory"),
    ("set-unit-strides", "magweld.passes.gpu.set_unit_strides:SetUnitStrides"),
    ("split-rows", "magweld.passes.gpu.split_rows:SplitRows"),
    ("mark-readonly", "magweld.passes.cpu.mark_readonly:MarkReadonly"),
    ("unshare-inits", "magweld.passes.cpu.unshare_inits:UnshareInits"),
    ("select-matrix-loads", "magweld.passes.gpu.select_matrix_loads:SelectMatrixLoads"),
    ("pass-tensor-maps", "magweld.passes.gpu.pass_tensor_maps:PassTensorMaps"),
    (
        "select-bulk-copies",
        "magweld.passes.gpu.select_bulk_copies:SelectBulkCopies",
    ),
    (
        "select-warpgroup-products",
        "magweld.passes.gpu.select_warpgroup_products:SelectWarpgroupProducts",
    ),
    ("serialize-to-binary", "magweld.passes.gpu.serialize_to_binary:SerializeToBinary"),
    (
        "stage-in-shared-memory",
        "magweld.passes.gpu.stage_in_shared_memory:StageInSharedMemory",
    ),
    (
        "tile-reduction-steps",
        "magweld.passes.gpu.tile_reduction_steps:TileReductionSteps",
    ),
    (
        "unroll-register-loops",
        "magweld.passes.gpu.unroll_register_loops:UnrollRegisterLoops",
    ),
    (
        "vectorize-accesses",
        "magweld.passes.gpu.vectorize_accesses:VectorizeAccesses",
    ),
    (
        "erase-host-functions",
        "magweld.passes.phase.erase_host_functions:EraseHostFunctions",
    ),
    ("strip-tile-graph", "magweld.passes.phase.strip_tile_graph:StripTileGraph"),
    (
        "tensor-forall-to-for",
        "magweld.passes.phase.tensor_forall_to_for:TensorForallToFor",
    ),
    ("verify-phase", "magweld.passes.phase.verify_phase:VerifyPhase"),
)

_PIPELINES: tuple[tuple[str, str], ...] = (
    ("magweld-cpu", "magweld.passes.pipelines.middle:CpuPipeline"),
    ("magweld-gpu", "magweld.passes.pipelines.middle:GpuPipeline"),
)


class PassRegistry:
    """Names of passes and of pipelines, and where their classes are."""

    def __init__(
        self,
        entries: Iterable[tuple[str, str]],
        pipelines: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Make a registry of `(name, "module:Class")` entries.

        Args:
            entries: Passes.
            pipelines: Named pipelines.

        Raises:
            ValueError: Two entries have one name, or one is ill-formed.
        """
        self._targets: dict[str, str] = {}
        self._pipelines: dict[str, str] = {}
        for name, target in entries:
            self._add(self._targets, name, target)
        for name, target in pipelines:
            self._add(self._pipelines, name, target)

    def _add(self, table: dict[str, str], name: str, target: str) -> None:
        other = self._targets.get(name) or self._pipelines.get(name)
        if other is not None:
            raise ValueError(f"pass '{name}' is both {other} and {target}")
        if target.count(":") != 1:
            raise ValueError(f"pass '{name}': '{target}' is no 'module:Class'")
        table[name] = target

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted."""
        return tuple(sorted(self._targets))

    def with_passes(self, entries: Iterable[tuple[str, str]]) -> PassRegistry:
        """Return a registry that has further passes.

        Raises:
            ValueError: As the constructor.
        """
        known = (*self._targets.items(), *entries)
        return PassRegistry(known, self._pipelines.items())

    def target(self, name: str) -> str:
        """Return the `module:Class` of a pass without importing it."""
        return self._targets[name]

    def get(self, name: str) -> type[Pass]:
        """Import and return the class of a pass.

        Raises:
            KeyError: No pass has the name.
            TypeError: The table names something else than this pass.
        """
        found: type[Pass] = _imported(self._targets[name], name, Pass, "pass")
        return found

    def pipeline_names(self) -> tuple[str, ...]:
        """Return the names of all named pipelines, sorted."""
        return tuple(sorted(self._pipelines))

    def pipeline(self, name: str) -> type[NamedPipeline]:
        """Import and return the class of a named pipeline.

        Raises:
            KeyError: No pipeline has the name.
            TypeError: The table names something else than this pipeline.
        """
        target = self._pipelines[name]
        found: type[NamedPipeline] = _imported(target, name, NamedPipeline, "pipeline")
        return found


def _imported(target: str, name: str, kind: type[Any], word: str) -> Any:
    """Import a class, which must be of a kind and have a name."""
    module_name, class_name = target.split(":")
    found: Any = getattr(importlib.import_module(module_name), class_name)
    is_one = isinstance(found, type) and issubclass(found, kind)
    if not is_one:
        raise TypeError(f"{target} is no {word}")
    if found.name != name:
        raise TypeError(f"{target} is called '{found.name}'")
    return found


PASSES = PassRegistry(_PASSES, _PIPELINES)
