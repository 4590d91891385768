"""Owns select-warpgroup-products: which products warpgroups compute by `wgmma`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import FRAGMENT, SWIZZLED, WARPGROUPS
from magweld.passes.gpu.fragment_product import FragmentProduct
from magweld.passes.gpu.linalg_structure import linalg_operations_in
from magweld.passes.gpu.structure import (
    block_loop_of,
    kernels_of,
)
from magweld.passes.gpu.swizzled_tiles import aligned_bytes, build_fence
from magweld.passes.gpu.warpgroup_product import (
    WarpgroupProduct,
    copies_to,
    wait_in,
)
from magweld.passes.infrastructure.base import Pass


@dataclass(frozen=True)
class SelectWarpgroupProducts(Pass):
    """Let warpgroups compute products whose factors are copied ahead to rings.

        cp.async.wait; barrier
        linalg.generic {...} attrs = {tile_graph.fragment = ...}
            =>   cp.async.wait; fence.proxy.async; barrier
                 linalg.generic {...} attrs = {tile_graph.fragment = ...,
                                               tile_graph.warpgroups}

    `wgmma` reads both factors from shared memory itself, for four subgroups with 16
    rows each and all columns. It sees what threads have copied behind a fence of
    theirs. It wants rows of 128 bytes that are swizzled: the rings and the copies to
    them get `tile_graph.swizzled`. Rings that anything else reads, that are not filled
    by pieces of 16 bytes, or that have no room at multiples of 1024 bytes, are left as
    they are.
    """

    name: ClassVar[str] = "select-warpgroup-products"

    capacity: Annotated[int, "bytes of shared memory that a block may use"] = 49152

    def run(self, module: Any) -> None:
        """Mark the products of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            if aligned_bytes(loop) > self.capacity:
                continue
            for op in linalg_operations_in(kernel):
                if FRAGMENT in op.operation.attributes:
                    _select(op)


def _select(op: Any) -> None:
    found = WarpgroupProduct.of(FragmentProduct(op))
    wait = wait_in(op)
    if found is None or wait is None or found.rows.ring == found.columns.ring:
        return
    rings = [found.rows.ring, found.columns.ring]
    copies = [copies_to(ring, op) for ring in rings]
    if any(one is None for one in copies):
        return
    with op.location:
        op.operation.attributes[WARPGROUPS] = ir.UnitAttr.get()
        swizzled = [one for some in copies if some is not None for one in some]
        _swizzle([*swizzled, *(ring.owner for ring in rings)])
        with ir.InsertionPoint.after(wait):
            build_fence()


def _swizzle(operations: Sequence[Any]) -> None:
    for op in operations:
        op.operation.attributes[SWIZZLED] = ir.UnitAttr.get()
