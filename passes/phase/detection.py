"""Owns the recognition of the phase that a module is at, by what it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from magweld.bindings import func, gpu, ir, llvm
from magweld.dialects.tile_graph import FOR_TILES, is_kernel, is_tile_graph
from magweld.passes.infrastructure.phases import Phase

_BOTH_GPU = (Phase.NVVM, Phase.ROCDL)
# Attributes of LLVM functions in a gpu.module that are kernels.
_KERNEL_MARKS = {"nvvm.kernel": (Phase.NVVM,), "rocdl.kernel": (Phase.ROCDL,)}
_PLANNED_OR_BEFORE = (Phase.TILE_GRAPH, Phase.SCHEDULED, Phase.PLANNED)


def phases_at(module: ir.Operation) -> tuple[Phase, ...]:
    """Return the phases that a module may be at, in their order.

    More than one is possible where a phase has nothing to do: a tile graph without
    operators is scheduled, one with library calls alone is planned, and an empty module
    is at all of them.
    """
    contents = _Contents.of(module)
    return next(phases(contents) for holds, phases in _RULES if holds(contents))


@dataclass
class _Contents:
    """What tells phases apart.

    Attributes:
        names: Names of all operations.
        dialects: Their dialects.
        tops: Names of the operations directly in the module.
        kernel_types: Types of the arguments of tiled kernels.
        is_planned: Whether a function has places for its tensors.
        is_graph: Whether a function is a tile graph.
        marks: Phases of the kernels that are marked for one kind of GPU.
        types: Prefixes of the types of functions' arguments and results.
    """

    names: set[str] = field(default_factory=set)
    dialects: set[str] = field(default_factory=set)
    tops: set[str] = field(default_factory=set)
    has_kernels: bool = False
    on_buffers: bool = False
    is_planned: bool = False
    is_graph: bool = False
    of_torch: bool = False
    marks: tuple[Phase, ...] = ()

    @classmethod
    def of(cls, module: ir.Operation) -> _Contents:
        contents = cls()
        for op in module.regions[0].blocks[0].operations:
            contents.tops.add(op.operation.name)
            contents._function(op)
        module.walk(contents._visit)
        return contents

    def _function(self, op: ir.OpView) -> None:
        if not isinstance(op, func.FuncOp):
            return
        kinds = [*op.type.inputs, *op.type.results]
        self.has_kernels |= is_kernel(op)
        self.is_graph |= is_tile_graph(op)
        self.is_planned |= "magweld.arena_bytes" in op.attributes
        self.on_buffers |= any(isinstance(kind, ir.MemRefType) for kind in kinds)
        self.of_torch |= any(str(kind).startswith("!torch.") for kind in kinds)

    def _visit(self, op: ir.Operation) -> ir.WalkResult:
        self.names.add(op.name)
        self.dialects.add(op.name.partition(".")[0])
        if op.name == llvm.LLVMFuncOp.OPERATION_NAME:
            for name, phases in _KERNEL_MARKS.items():
                if name in op.attributes:
                    self.marks = phases
        return ir.WalkResult.ADVANCE

    def has(self, kind: type[ir.OpView]) -> bool:
        return kind.OPERATION_NAME in self.names


def _graph_phases(contents: _Contents) -> tuple[Phase, ...]:
    if FOR_TILES in contents.names:
        return (Phase.PLANNED,)
    if "tile_graph.subgraph" in contents.names:
        # What libraries compute has no plan.
        return (Phase.SCHEDULED, Phase.PLANNED)
    if "tile_graph.operator" in contents.names:
        return (Phase.TILE_GRAPH,)
    return _PLANNED_OR_BEFORE


def _buffer_phases(contents: _Contents) -> tuple[Phase, ...]:
    whole = bool({"linalg", "bufferization"} & contents.dialects)
    return (Phase.BUFFERIZED,) if whole else (Phase.BUFFERIZED, Phase.VECTORIZED)


_Rule = tuple[
    Callable[[_Contents], bool],
    Callable[[_Contents], tuple[Phase, ...]],
]
# From the last phase to the first: what is left of an earlier one tells nothing.
_RULES: tuple[_Rule, ...] = (
    (lambda c: c.has(gpu.BinaryOp), lambda c: (Phase.BINARY,)),
    (
        lambda c: c.has(gpu.GPUModuleOp) and c.has(llvm.LLVMFuncOp),
        lambda c: c.marks or _BOTH_GPU,
    ),
    (lambda c: c.has(gpu.GPUModuleOp), lambda c: (Phase.GPU,)),
    (lambda c: c.has(llvm.LLVMFuncOp), lambda c: (Phase.LLVM,)),
    (lambda c: c.on_buffers, _buffer_phases),
    (lambda c: c.has_kernels or c.is_planned, lambda c: (Phase.TILED,)),
    (lambda c: c.is_graph, _graph_phases),
    (lambda c: c.of_torch or "torch" in c.dialects, lambda c: (Phase.TORCH,)),
    (lambda c: bool(c.tops), lambda c: (Phase.LINALG,)),
    (lambda c: True, lambda c: tuple(Phase)),
)
