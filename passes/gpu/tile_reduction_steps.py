"""Owns tile-reduction-steps: contractions advance over their reduction in steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import func, ir, structured_transform, tensor
from magweld.passes.gpu.borders import border_of, maker_of
from magweld.passes.gpu.linalg_structure import (
    has_windows,
    inputs_of,
    is_contraction,
    linalg_operations_in,
    loop_nest_of,
)
from magweld.passes.gpu.structure import (
    block_loop_of,
    element_bytes,
    kernels_of,
)
from magweld.passes.gpu.thread_layout import divisors
from magweld.passes.gpu.transform_script import (
    apply_script,
    match_tagged,
    remove_tags,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.tiling.steps import BORDERED_BYTES

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

    A convolution whose image gets a border advances over its channels if the image with
    its border has more than `border-bytes`: each step makes the border around as many
    channels as that holds.
    """

    name: ClassVar[str] = "tile-reduction-steps"

    step: Annotated[int, "least limit on the elements of one step"] = 16
    border_bytes: Annotated[int, "most bytes of an image with border"] = BORDERED_BYTES

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
            sizes = _step_sizes(op, limit) or _channel_step(op, self.border_bytes)
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
        for op in linalg_operations_in(block_loop_of(kernel)):
            if has_windows(op):
                _move_borders(op)


def _step_sizes(op: Any, limit: int) -> list[int]:
    """Return the tile size of each loop, 0 for loops that stay whole; [] for none."""
    if not is_contraction(op):
        return []
    nest = loop_nest_of(op)
    *outer, inner = nest.reduction
    sizes = [0] * len(nest.extents)
    for loop in outer:
        sizes[loop] = 1 if nest.extents[loop] > 1 else 0
    step = max(d for d in divisors(nest.extents[inner]) if d <= max(1, limit))
    sizes[inner] = step if step < nest.extents[inner] else 0
    return sizes


def _channel_step(op: Any, limit: int) -> list[int]:
    """Return the tile sizes of a convolution that advances over channels."""
    nest = loop_nest_of(op)
    for value, loops in zip(inputs_of(op), nest.maps, strict=False):
        border = border_of(value)
        if border is None:
            continue
        shape = border.bordered.shape
        size = math.prod(shape) * element_bytes(border.bordered.element_type)
        for dimension, loop in enumerate(loops):
            if loop not in nest.reduction or not border.is_whole(dimension):
                continue
            channel = size // shape[dimension]
            fitting = [d for d in divisors(shape[dimension]) if d * channel <= limit]
            step = max(fitting, default=1)
            if step < shape[dimension]:
                return [step if i == loop else 0 for i in range(len(nest.extents))]
    return []


def _move_borders(op: Any) -> None:
    """Make borders around the channels of a step instead of around all of them."""
    for position, value in enumerate(inputs_of(op)):
        step = maker_of(value, tensor.ExtractSliceOp)
        border = None if step is None else border_of(step.source)
        if border is None or step.operation.parent == border.inserted.operation.parent:
            continue
        moved = [
            dimension
            for dimension, size in enumerate(step.static_sizes)
            if size != step.source.type.shape[dimension]
        ]
        if len(moved) == 1 and border.is_whole(moved[0]):
            with ir.InsertionPoint(step), step.location:
                op.operands[position] = border.of_step(step, moved[0])


def _number(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
