"""Owns unroll-register-loops: indices into register tiles become constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import affine, func, ir, loop_transform
from magweld.passes.gpu.structure import is_in_space, kernels_of, private_space
from magweld.passes.gpu.transform_script import (
    apply_script,
    match_tagged,
    remove_tags,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of

_TAG = "magweld.unroll"
# Elements of the widest access: eight halves.
_WIDEST = 8


@dataclass(frozen=True)
class UnrollRegisterLoops(Pass):
    """Unroll the loops of one thread.

    Loops that index a tile in `#gpu.address_space<private>` are unrolled completely:
    only what has constant indices can live in registers. Other loops are unrolled
    with them as long as the nest has at most `iterations`, innermost ones of at most
    eight always: neighbouring elements are accessed at once.
    """

    name: ClassVar[str] = "unroll-register-loops"

    iterations: Annotated[int, "largest nest that is unrolled for speed alone"] = 512

    def run(self, module: Any) -> None:
        """Unroll the loops of all kernels."""
        for number in range(len(kernels_of(module))):
            self._run_on_kernel(kernels_of(module)[number])

    def _run_on_kernel(self, kernel: func.FuncOp) -> None:
        tags: set[tuple[int, int]] = set()
        loops = operations_of(kernel, affine.AffineForOp)
        required = _indexing_loops(kernel)
        for loop in loops:
            nest = _nest_around(loop)
            size = math.prod(map(_trip_count, nest))
            inside = math.prod(map(_trip_count, operations_of(loop, type(loop))))
            small = size * inside // _trip_count(loop) <= self.iterations
            short = inside == 1 and _trip_count(loop) <= _WIDEST
            if small or short or loop.operation in required:
                # Inner loops first: unrolling an outer one copies those inside it.
                tag = (len(nest), _trip_count(loop))
                tags.add(tag)
                loop.operation.attributes[_TAG] = ir.DenseI64ArrayAttr.get(tag)
        if not tags:
            return

        def build(root: ir.Value) -> None:
            for tag in sorted(tags, reverse=True):
                target = match_tagged(root, _TAG, ir.DenseI64ArrayAttr.get(tag))
                loop_transform.LoopUnrollOp(target, factor=max(1, tag[1]))

        apply_script(kernel, build)
        remove_tags(kernel, _TAG)


def _trip_count(loop: Any) -> int:
    lower, upper = (
        int(ir.AffineConstantExpr(map_.value.results[0]).value)
        for map_ in (loop.lowerBoundMap, loop.upperBoundMap)
    )
    return (upper - lower) // int(ir.IntegerAttr(loop.step).value)


def _nest_around(loop: Any) -> list[Any]:
    """Return a loop and the affine loops that contain it, outermost last."""
    found = [loop]
    parent = loop.operation.parent
    while parent is not None and isinstance(parent.opview, affine.AffineForOp):
        found.append(parent.opview)
        parent = parent.parent
    return found


def _indexing_loops(kernel: func.FuncOp) -> set[Any]:
    """Return the loops whose variables index a private tile."""
    found: set[Any] = set()
    space = private_space()
    for kind in (affine.AffineLoadOp, affine.AffineStoreOp):
        for access in operations_of(kernel, kind):
            if not is_in_space(access.memref, space):
                continue
            pending = list(access.indices)
            while pending:
                index = pending.pop()
                if isinstance(index, ir.BlockArgument):
                    found.add(index.owner.owner)
                elif isinstance(index.owner.opview, affine.AffineApplyOp):
                    pending += index.owner.operands
    return found
