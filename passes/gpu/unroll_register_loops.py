"""Owns unroll-register-loops: indices into register tiles become constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import affine, func, ir, loop_transform
from magweld.passes.gpu.structure import (
    VECTOR_BYTES,
    element_bytes,
    is_in_space,
    kernels_of,
    private_space,
)
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
    eight always: neighbouring elements are accessed at once. Of a longer loop along
    the rows of a tile as many iterations become one as elements have 16 bytes.
    """

    name: ClassVar[str] = "unroll-register-loops"

    iterations: Annotated[int, "largest nest that is unrolled for speed alone"] = 512

    def run(self, module: Any) -> None:
        """Unroll the loops of all kernels."""
        for number in range(len(kernels_of(module))):
            self._run_on_kernel(kernels_of(module)[number])

    def _run_on_kernel(self, kernel: func.FuncOp) -> None:
        loops = operations_of(kernel, affine.AffineForOp)
        # An attribute changes the hash of an operation: all is decided before.
        factors = self._factors(loops, _indexing_loops(kernel))
        tags: set[tuple[int, int]] = set()
        for loop, factor in zip(loops, factors, strict=True):
            if factor > 1 or _trip_count(loop) == 1:
                # Inner loops first: unrolling an outer one copies those inside it.
                tag = (len(_nest_around(loop)), factor)
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

    def _factors(self, loops: list[Any], required: set[Any]) -> list[int]:
        """Return how many iterations of each of the loops become one."""
        whole: set[Any] = set()
        factors = []
        # What becomes of an outer loop depends on those inside it.
        for loop in reversed(loops):
            factors.append(self._factor(loop, required, whole))
            if factors[-1] == _trip_count(loop):
                whole.add(loop.operation)
        return factors[::-1]

    def _factor(self, loop: Any, required: set[Any], whole: set[Any]) -> int:
        """Return how many iterations of a loop become one, 1 for a loop that stays.

        Args:
            loop: The loop.
            required: Loops that have to be unrolled completely.
            whole: Loops inside it that are.
        """
        trips = _trip_count(loop)
        # The loop itself comes first.
        inside = operations_of(loop, affine.AffineForOp)[1:]
        each = math.prod(map(_trip_count, inside))
        nest = math.prod(map(_trip_count, _nest_around(loop))) * each
        short = not inside and trips <= _WIDEST
        if nest <= self.iterations or short or loop.operation in required:
            return trips
        if not all(one.operation in whole for one in inside):
            return 1
        width = _neighbours(loop)
        return width if trips % width == 0 and width * each <= self.iterations else 1


def _trip_count(loop: Any) -> int:
    lower, upper = (
        int(ir.AffineConstantExpr(map_.value.results[0]).value)
        for map_ in (loop.lowerBoundMap, loop.upperBoundMap)
    )
    return (upper - lower) // int(ir.IntegerAttr(loop.step).value)


def _neighbours(loop: Any) -> int:
    """Return how many elements a loop passes that a thread may access at once.

    Those of rows of a memory that is not private, side by side; 1 where there are none.
    """
    variable = loop.induction_variable
    found = 1
    for kind in (affine.AffineLoadOp, affine.AffineStoreOp):
        for access in operations_of(loop, kind):
            type_ = ir.MemRefType(access.memref.type)
            strides, _ = type_.get_strides_and_offset()
            along = _along_rows(access)
            if along is None or is_in_space(access.memref, private_space()):
                continue
            if along == variable and strides[-1] == 1:
                found = max(found, VECTOR_BYTES // element_bytes(type_.element_type))
    return found


def _along_rows(access: Any) -> ir.Value | None:
    """Return the value that is the last index of an access, None for others."""
    results = access.map.value.results
    last = results[-1] if len(results) else None
    if not isinstance(last, ir.AffineDimExpr):
        return None
    value: ir.Value = access.indices[last.position]
    return value


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
