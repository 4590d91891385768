"""Owns name-contractions: products that are sums over loops become linalg.contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import func, ir, linalg
from magweld.dialects.tile_graph import REDUCTION_BLOCK
from magweld.passes.cpu.generic_forms import maps_of
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.cpu.loop_nest import is_product
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class NameContractions(Pass):
    """Rename every generic matrix product of a kernel, with any index maps.

        linalg.generic {maps} ins(%a, %b) outs(%c) { %c + %a * %b }
            =>   linalg.contract indexing_maps = maps ins(%a, %b) outs(%c)

    Fusion of element-wise operations works on `linalg.generic` alone. Under another
    name a product keeps its plain operands, which its register tile needs: fused
    into it, what makes an operand would be computed once for every product.
    """

    name: ClassVar[str] = "name-contractions"

    def run(self, module: ir.Operation) -> None:
        """Rename the products of all kernels of the module."""
        for function in kernels_of(module):
            _name_contractions(function)


def _name_contractions(function: func.FuncOp) -> None:
    for op in operations_of(function, linalg.GenericOp):
        if not _is_contraction(op.operation):
            continue
        with ir.InsertionPoint(op), op.location:
            contract = linalg.ContractOp(
                [result.type for result in op.operation.results],
                list(op.inputs),
                list(op.outputs),
                op.attributes["indexing_maps"],
            )
            linalg.fill_builtin_region(contract.operation)
        if REDUCTION_BLOCK in op.attributes:
            contract.attributes[REDUCTION_BLOCK] = op.attributes[REDUCTION_BLOCK]
        for old, new in zip(
            op.operation.results, contract.operation.results, strict=True
        ):
            old.replace_all_uses_with(new)
        op.operation.erase()


def _is_contraction(op: ir.Operation) -> bool:
    """Whether `linalg.contract` says the same: each loop is an index as it is."""
    if not is_product(op) or len(op.results) != 1:
        return False
    maps = maps_of(op)
    if not all(m.is_projected_permutation for m in maps):
        return False
    *inputs, output = [{expr.position for expr in m.results} for m in maps]
    summed = set().union(*inputs) - output
    reductions = {
        dim
        for dim, kind in enumerate(op.attributes["iterator_types"])
        if "reduction" in str(kind)
    }
    # A loop of the product is in two of the three operands at least.
    shared = all(sum(dim in m for m in (*inputs, output)) > 1 for dim in summed)
    return bool(reductions) and reductions == summed and shared
