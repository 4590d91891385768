"""Owns reductions that lanes of a subgroup share: which can be, and what says so."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, linalg, memref, scf
from magweld.dialects.tile_graph import SUBGROUP_REDUCTION
from magweld.passes.gpu.cross_thread_reduction import Combiner
from magweld.passes.gpu.linalg_structure import (
    LoopNest,
    linalg_operations_in,
    outputs_of,
)
from magweld.passes.gpu.structure import (
    is_thread_loop,
    private_space,
    storage_of,
    workgroup_space,
)
from magweld.passes.gpu.thread_layout import ThreadLayout
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.utils import operations_of

# What lanes can exchange on every target: 32 bits, or what they hold exactly.
_EXCHANGED = ("f32", "i32", "f16", "bf16")
# Results that one thread keeps in registers.
_MOST_RESULTS = 64


@dataclass(frozen=True)
class SubgroupReduction:
    """A reduction whose threads lie side by side in full subgroups.

    Each thread reduces what it has into `partial`; then `lanes` neighbours combine
    these into `total`, and the first of them writes it to `output`.

    Attributes:
        partial: Memref in private memory, of the results of one thread.
        total: Likewise, of all lanes.
        output: Memref of the results, or of one slot a result and group: dimensions of
            the result, then that of the groups.
        lanes: Neighbours that combine.
        groups: How many such groups share a result.
        loops: Reduction loops that threads share.
        combiner: How two partial results become one.
        initial: What `output` begins with; None for what it holds.
    """

    partial: Any
    total: Any
    output: Any
    lanes: int
    groups: int
    loops: tuple[int, ...]
    combiner: Combiner
    initial: ir.Value | None

    def build_combination(self, output: ir.Value) -> None:
        """Build what combines the partial results of lanes.

        Args:
            output: The elements of one thread, in the shape of `partial`.
        """
        identity = ir.AffineMap.get_identity(len(self.partial.type.shape))
        total = self.total
        if self.initial is not None:
            linalg.fill(self.initial, outs=[total])
        else:
            total = output

        def body(values: Sequence[ir.Value]) -> list[ir.Value]:
            return [self.combiner.build(*values)]

        self._mark(build_generic([self.partial], [total], [identity] * 2, body))
        if self.initial is not None:
            self._mark(
                build_generic([total], [output], [identity] * 2, lambda v: [v[0]])
            )

    def _mark(self, generic: Any) -> None:
        i64 = ir.IntegerType.get_signless(64)
        lanes = ir.IntegerAttr.get(i64, self.lanes)
        generic.operation.attributes[SUBGROUP_REDUCTION] = lanes


def subgroup_reduction_of(
    op: Any, nest: LoopNest, layout: ThreadLayout, combiner: Combiner, lanes: int
) -> SubgroupReduction:
    """Allocate what `lanes` neighbours need to reduce, in front of `op`.

    Args:
        op: A linalg reduction on memrefs, in the loop over blocks.
        nest: Its loops.
        layout: How threads share them.
        combiner: How two results become one.
        lanes: As `combining_lanes` says.
    """
    loops = tuple(i for i in nest.reduction if layout.threads[i] > 1)
    written = nest.output_maps[0]
    groups = math.prod(layout.threads[i] for i in loops) // lanes
    element = combiner.element
    own = [1 if loop is None else layout.per_thread[loop] for loop in written]
    whole = [1 if loop is None else nest.extents[loop] for loop in written]
    with op.location:
        private = ir.MemRefType.get(own, element, memory_space=private_space())
        # At the start of the block: an alloca in a loop would grow the stack.
        with ir.InsertionPoint.at_block_begin(_block_loop_around(op).body):
            partial, total = (memref.AllocaOp(private, [], []).memref for _ in range(2))
        with ir.InsertionPoint(op):
            if groups == 1:
                (output,) = outputs_of(op)
                initial = _take_fill(op, output)
            else:
                slots = ir.MemRefType.get(
                    [*whole, groups], element, memory_space=workgroup_space()
                )
                output = memref.AllocOp(slots, [], []).memref
                initial = combiner.neutral_constant()
    return SubgroupReduction(
        partial, total, output, lanes, groups, loops, combiner, initial
    )


def _block_loop_around(op: Any) -> Any:
    parent = op.operation.parent
    while not isinstance(parent.opview, scf.ForallOp):
        parent = parent.parent
    return parent.opview


def _take_fill(op: Any, output: ir.Value) -> ir.Value | None:
    """Erase the thread loop that fills `output` last before `op`; return with what.

    None if the last loop that touches it does something else, or none is in the block
    of `op`: what `output` holds then is not known.
    """
    before = itertools.takewhile(lambda o: o != op.operation, _operations_around(op))
    for earlier in reversed(list(before)):
        if not _touches(earlier, storage_of(output)):
            continue
        if not is_thread_loop(earlier.opview):
            return None
        works = linalg_operations_in(earlier.opview)
        views = operations_of(earlier, memref.SubViewOp)
        if len(works) != 1 or not isinstance(works[0], linalg.FillOp):
            return None
        if [view.source for view in views] != [output]:
            return None
        value: ir.Value = works[0].inputs[0]
        earlier.erase()
        return value
    return None


def _operations_around(op: Any) -> list[ir.Operation]:
    return [other.operation for other in op.operation.block.operations]


def _touches(op: ir.Operation, storage: ir.Value) -> bool:
    """Tell whether an operation, or one in it, uses a view of `storage`."""
    return any(
        isinstance(value.type, ir.MemRefType) and storage_of(value) == storage
        for inner in operations_of(op, ir.OpView)
        for value in inner.operands
    )


def combining_lanes(
    nest: LoopNest, layout: ThreadLayout, combiner: Combiner, subgroup: int
) -> int:
    """Return how many neighbours combine what they have, 1 if none can.

    Those of one result lie side by side, all subgroups with work are full, and lanes
    can exchange the elements.

    Args:
        nest: Loops of the reduction.
        layout: How threads share them.
        combiner: How two results become one.
        subgroup: Threads that execute in lockstep; a power of two.
    """
    shared = [loop for loop, count in enumerate(layout.threads) if count > 1]
    kinds = [loop in nest.reduction for loop in shared]
    along = math.prod(layout.threads[loop] for loop in nest.reduction)
    results = math.prod(layout.per_thread[loop] for loop in nest.parallel)
    fits = (
        kinds == sorted(kinds)
        and layout.total % subgroup == 0
        and results <= _MOST_RESULTS
        and str(combiner.element) in _EXCHANGED
    )
    return math.gcd(along, subgroup) if fits else 1
