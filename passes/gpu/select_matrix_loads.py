"""Owns select-matrix-loads: which factors of products `ldmatrix` loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import FRAGMENT, MATRIX_LOADS, WARPGROUPS
from magweld.passes.gpu.fragment_product import FragmentProduct
from magweld.passes.gpu.linalg_structure import linalg_operations_in
from magweld.passes.gpu.matrix_loads import can_load
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.infrastructure.base import Pass


@dataclass(frozen=True)
class SelectMatrixLoads(Pass):
    """Let `ldmatrix` load the factors of matrix instructions, where it can.

        linalg.generic {...} attrs = {tile_graph.fragment = ...}
            =>   attrs = {tile_graph.fragment = ...,
                          tile_graph.matrix_loads = array<i64: 0, 1>}

    Factor 0 is that of the rows, 1 that of the columns. One instruction loads for all
    lanes of a subgroup what four loads of each lane would. It wants elements of two
    bytes, in rows of eight that lie side by side at multiples of 16 bytes: along the
    reduction, or along the rows (columns) of the result, which it transposes.
    pad-shared-tiles keeps these rows aligned, and apart from each other in the banks.
    Other factors, and those of AMD's instructions, are loaded by each lane. Products of
    warpgroups load nothing.
    """

    name: ClassVar[str] = "select-matrix-loads"

    def run(self, module: Any) -> None:
        """Mark the products of all kernels."""
        for kernel in kernels_of(module):
            for op in linalg_operations_in(kernel):
                attributes = op.operation.attributes
                if FRAGMENT in attributes and WARPGROUPS not in attributes:
                    _mark(op)


def _mark(op: Any) -> None:
    product = FragmentProduct(op)
    factors = enumerate(product.factors())
    loaded = [number for number, one in factors if can_load(product, one)]
    if loaded:
        with op.location:
            attribute = ir.DenseI64ArrayAttr.get(loaded)
        op.operation.attributes[MATRIX_LOADS] = attribute
