"""Owns map-tiles-to-threads: the operations of a block are shared by its threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir, linalg, memref
from magweld.passes.gpu.bank_conflicts import BANKS
from magweld.passes.gpu.cross_thread_reduction import (
    Combiner,
    Partials,
    allocate_partials,
    build_merge,
    combiner_of,
)
from magweld.passes.gpu.linalg_structure import (
    LoopNest,
    is_contraction,
    is_structured,
    loop_nest_of,
    operations_on_buffers,
    outputs_of,
    reads_transposed,
)
from magweld.passes.gpu.parts_of_loops import in_parts, may_be_parted
from magweld.passes.gpu.streaming_layout import (
    Stream,
    Subgroup,
    rest_loop,
    streaming_layout,
    whole_iterations,
)
from magweld.passes.gpu.streams import is_apart, is_transpose, streams_of
from magweld.passes.gpu.structure import (
    VECTOR_LOOP,
    block_loop_of,
    is_in_space,
    kernels_of,
    phases_in,
    workgroup_space,
)
from magweld.passes.gpu.subgroup_reduction import (
    combining_lanes,
    subgroup_reduction_of,
)
from magweld.passes.gpu.thread_layout import (
    ThreadLayout,
    balanced_layout,
    coalesced_layout,
    divisors,
    merge_threads,
    window_layout,
)
from magweld.passes.gpu.thread_loop import build_thread_loop
from magweld.passes.gpu.thread_slices import thread_loop_around
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error, users_of

# Partial results that one thread merges alone; more are merged in two rounds.
_SERIAL_MERGE = 8


@dataclass(frozen=True)
class MapTilesToThreads(Pass):
    """Share the iterations of every operation of a block among its threads.

    A linalg operation on whole tiles becomes a `scf.forall` mapped to
    `#gpu.thread<linear_dim_*>` around the same operation on strided slices: thread t
    of T takes elements t, t + T, ... The output tile of a contraction is shared in
    near-square pieces, everything that works on such a tile follows it, and the rest
    is shared so that neighbours read neighbours, or write neighbours where a copy is
    read across its rows; a loop that is named by `magweld.vector_loop` no threads
    share. Where counts that divide rows would have neighbours in several rows, and no
    tile can stay in registers, fewer threads may work, so that instructions touch fewer
    sectors, and the last of 197 rows are shared apart from the first 192. A reduction
    that several threads share writes one partial result a thread to workgroup memory,
    which further operations merge. Where the threads of a result lie side by side in
    full subgroups, lanes combine theirs first:
    `tile_graph.subgroup_reduction` says how many, and the first of them writes the
    result, or one partial result for all.
    """

    name: ClassVar[str] = "map-tiles-to-threads"

    threads: Annotated[int, "threads of a block"] = 256
    subgroup: Annotated[int, "threads that execute in lockstep"] = 32
    sector: Annotated[int, "bytes of a transaction of global memory"] = 32

    def run(self, module: Any) -> None:
        """Share the operations of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            _check_allocations(loop)
            mapping = _Mapping(self)
            every = operations_on_buffers(loop)
            # What matrix instructions compute has its threads already.
            operations = [op for op in every if thread_loop_around(op) is None]
            mapping.fix_accumulators(operations)
            for op in operations:
                mapping.share(op)


def _check_allocations(loop: Any) -> None:
    space = workgroup_space()
    for op in phases_in(loop.body):
        if isinstance(op, memref.AllocOp) and not is_in_space(op.memref, space):
            raise located_error(
                op,
                "is a temporary in global memory: the tile it holds is still read "
                "after its own buffer is overwritten",
            )


class _Mapping:
    """Shares the operations of one kernel; remembers how buffers are shared."""

    def __init__(self, options: MapTilesToThreads) -> None:
        self._options = options
        # Threads along each dimension of an allocation.
        self._buffers: dict[Any, tuple[int, ...]] = {}

    def fix_accumulators(self, operations: list[Any]) -> None:
        """Let contractions decide how their outputs are shared."""
        for op in filter(_is_accumulation, operations):
            nest = loop_nest_of(op)
            self._buffers[outputs_of(op)[0]] = self._output_layout(nest).threads

    def share(self, op: Any) -> None:
        """Replace an operation on tiles by thread loops."""
        nest = loop_nest_of(op)
        rest = self._rest_loop(op, nest)
        parts = [op]
        if rest is not None:
            parts = in_parts(op, nest, rest, whole_iterations(nest.extents[rest]))
        for part in parts:
            nest = loop_nest_of(part)
            self._share(part, nest, self._layout(part, nest))

    def _rest_loop(self, op: Any, nest: LoopNest) -> int | None:
        """Return the loop whose last iterations threads share apart, None for none."""
        if not is_apart(op, nest):
            return None
        loops, arguments = self._streaming(op, nest)
        found = rest_loop(*arguments)
        if found is None or not may_be_parted(op, nest, loops[found]):
            return None
        return loops[found]

    def _share(self, op: Any, nest: LoopNest, layout: ThreadLayout) -> None:
        shares_reduction = any(layout.threads[i] > 1 for i in nest.reduction)
        # Partial results have one element where a constant is the index: number 0.
        begins = not any(index.constant for index in nest.indices[-1])
        combiner = combiner_of(op) if shares_reduction and begins else None
        if shares_reduction and combiner is None:
            layout = _without_loops(layout, nest.reduction)
        self._remember(op, nest, layout)
        if combiner is None:
            build_thread_loop(op, nest, layout)
        else:
            self._share_reduction(op, nest, layout, combiner)
        op.operation.erase()

    def _share_reduction(
        self, op: Any, nest: LoopNest, layout: ThreadLayout, combiner: Combiner
    ) -> None:
        lanes = combining_lanes(nest, layout, combiner, self._options.subgroup)
        if lanes > 1:
            shared = subgroup_reduction_of(op, nest, layout, combiner, lanes)
            build_thread_loop(op, nest, layout, shared)
            if shared.groups == 1:
                return
            partials = Partials(shared.output, shared.loops[:1], combiner)
        else:
            partials = allocate_partials(op, nest, layout, combiner)
            build_thread_loop(op, nest, layout, partials)
        merge = build_merge(op, nest, partials)
        merge_nest = loop_nest_of(merge)
        self._share(merge, merge_nest, self._merge_layout(merge_nest))

    def _merge_layout(self, nest: LoopNest) -> ThreadLayout:
        """Return how threads merge partial results, the last loop of which is long."""
        counts = [1] * len(nest.extents)
        counts[-1] = merge_threads(nest.extents[-1], _SERIAL_MERGE)
        rows = tuple(nest.extents[i] for i in nest.parallel)
        free = max(1, self._options.threads // counts[-1])
        counts[: len(rows)] = coalesced_layout(
            rows, free, self._options.subgroup
        ).threads
        if counts[-1] > self._options.threads:
            counts[-1] = 1
        return ThreadLayout(nest.extents, tuple(counts))

    def _layout(self, op: Any, nest: LoopNest) -> ThreadLayout:
        every = tuple(range(len(nest.extents)))
        decisive = nest.parallel if _is_accumulation(op) else every
        for value, loops in zip(op.operands, nest.maps, strict=True):
            threads = self._buffers.get(value)
            if threads is None or set(loops) != set(decisive):
                continue
            counts = dict(zip(loops, threads, strict=True))
            return _on_loops(nest, counts)
        if _is_accumulation(op):
            shared = self._output_layout(nest).threads
            return _on_loops(nest, dict(zip(nest.parallel, shared, strict=True)))
        return self._streaming_layout(op, nest)

    def _streaming_layout(self, op: Any, nest: LoopNest) -> ThreadLayout:
        loops, arguments = self._streaming(op, nest)
        layout = streaming_layout(*arguments)
        return _on_loops(nest, dict(zip(loops, layout.threads, strict=True)))

    def _streaming(
        self, op: Any, nest: LoopNest
    ) -> tuple[list[int], tuple[tuple[int, ...], int, int, Sequence[Stream], Subgroup]]:
        """Return the loops that threads share, and what the layout follows from."""
        options = self._options
        whole = op.operation.attributes.get(VECTOR_LOOP)
        number = None if whole is None else ir.IntegerAttr(whole).value
        streams = streams_of(op, nest, number)
        # Threads are numbered along what is written.
        numbered = nest.parallel if streams else range(len(nest.extents))
        loops = [loop for loop in numbered if loop != number]
        extents = tuple(nest.extents[loop] for loop in loops)
        along = options.subgroup
        if number is not None and is_transpose(nest):
            least = max(1, BANKS // nest.extents[number])
            # Fewer neighbours would write parts of transactions.
            along = min((d for d in divisors(extents[-1]) if d >= least), default=least)
        own = [one.along(loops) for one in streams]
        subgroup = Subgroup(options.subgroup, options.sector)
        return loops, (extents, options.threads, along, own, subgroup)

    def _output_layout(self, nest: LoopNest) -> ThreadLayout:
        """Return how threads share the output of a product or of windows."""
        options = self._options
        extents = tuple(nest.extents[i] for i in nest.parallel)
        read = nest.indices[: len(nest.indices) - nest.outputs]
        used = [{loop for index in one for loop, _ in index.terms} for one in read]
        places = [
            [place for place, loop in enumerate(nest.parallel) if loop in loops]
            for loops in used
        ]
        if not nest.has_windows:
            return balanced_layout(extents, places, options.threads)
        return window_layout(extents, places, options.threads, options.subgroup)

    def _remember(self, op: Any, nest: LoopNest, layout: ThreadLayout) -> None:
        for value, loops in zip(outputs_of(op), nest.output_maps, strict=True):
            is_allocation = not isinstance(value, ir.BlockArgument) and isinstance(
                value.owner.opview, memref.AllocOp
            )
            if is_allocation and not _is_transposing_copy(op, value):
                counts = tuple(1 if i is None else layout.threads[i] for i in loops)
                self._buffers.setdefault(value, counts)


def _is_transposing_copy(op: Any, tile: ir.Value) -> bool:
    """Tell whether `op` copies a tile that others read across its rows.

    They share it by the rows that they write.
    """
    return isinstance(op, linalg.CopyOp) and any(
        is_structured(user) and reads_transposed(user, tile) for user in users_of(tile)
    )


def _is_accumulation(op: Any) -> bool:
    """Tell whether each thread computes whole elements of the output of `op`."""
    if is_contraction(op):
        return True
    nest = loop_nest_of(op)
    return nest.has_windows and not is_apart(op, nest)


def _on_loops(nest: LoopNest, counts: Mapping[Any, int]) -> ThreadLayout:
    threads = tuple(counts.get(i, 1) for i in range(len(nest.extents)))
    return ThreadLayout(nest.extents, threads)


def _without_loops(layout: ThreadLayout, loops: tuple[int, ...]) -> ThreadLayout:
    counts = [1 if i in loops else c for i, c in enumerate(layout.threads)]
    return ThreadLayout(layout.extents, tuple(counts))
