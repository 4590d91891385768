"""Owns tile-reduction-steps: contractions advance over their reduction in steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import func, ir, structured_transform
from magweld.passes.base import Pass
from magweld.passes.gpu.linalg_structure import (
    is_contraction,
    linalg_operations_in,
    loop_nest_of,
)
from magweld.passes.gpu.structure import block_loop_of, kernels_of
from magweld.passes.gpu.thread_layout import divisors
from magweld.passes.gpu.transform_script import (
    apply_script,
    match_tagged,
    remove_tags,
)

_TAG = "magweld.reduction_step"
_SCHEDULED = "tile_graph.reduction_step"


@dataclass(frozen=True)
class TileReductionSteps(Pass):
    """Split the reduction of contractions so that a step fits shared memory.

    A contraction over K becomes `scf.for %k = 0 to K step S` that carries the
    accumulator. S is the largest divisor of K within `step`, or within what the
    schedule chose (`tile_graph.reduction_step` of the kernel) if that is more: every
    step waits for all threads twice, which shorter ones do not pay for. Outer
    reduction loops advance by one. Reductions of at most one step are left alone.
    """

    name: ClassVar[str] = "tile-reduction-steps"

    step: Annotated[int, "least limit on the elements of one step"] = 16

    def run(self, module: Any) -> None:
        """Split the contractions of all kernels."""
        for number in range(len(kernels_of(module))):
            self._run_on_kernel(kernels_of(module)[number])

    def _run_on_kernel(self, kernel: func.FuncOp) -> None:
        limit = self.step
        if _SCHEDULED in kernel.attributes:
            scheduled = ir.IntegerAttr(kernel.attributes[_SCHEDULED]).value
            limit = max(limit, scheduled)
        split: list[list[int]] = []
        for op in linalg_operations_in(block_loop_of(kernel)):
            sizes = _step_sizes(op, limit)
            if any(sizes):
                op.operation.attributes[_TAG] = _number(len(split))
                split.append(sizes)
        if not split:
            return

        def build(root: ir.Value) -> None:
            for number, sizes in enumerate(split):
                target = match_tagged(root, _TAG, _number(number))
                structured_transform.TileUsingForOp(target, sizes=sizes)

        apply_script(kernel, build)
        remove_tags(kernel, _TAG)


def _step_sizes(op: Any, limit: int) -> list[int]:
    """Return the tile size of each loop, 0 for loops that stay whole."""
    if not is_contraction(op):
        return [0]
    nest = loop_nest_of(op)
    *outer, inner = nest.reduction
    sizes = [0] * len(nest.extents)
    for loop in outer:
        sizes[loop] = 1 if nest.extents[loop] > 1 else 0
    step = max(d for d in divisors(nest.extents[inner]) if d <= max(1, limit))
    sizes[inner] = step if step < nest.extents[inner] else 0
    return sizes


def _number(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
