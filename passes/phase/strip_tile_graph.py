"""Owns strip-tile-graph: what upstream tools do not know leaves the module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import ConnectOp, ForTilesOp, OperatorOp, SubgraphOp
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error, operations_of

# Of attributes that say something about an operation and are no part of it.
_PREFIXES = ("tile_graph.", "magweld.")


@dataclass(frozen=True)
class StripTileGraph(Pass):
    """Remove the ops and attributes of the tile graph, so that upstream tools go on.

    Operators and subgraphs give way to what is in them, connects to their values;
    attributes whose names begin with `tile_graph.` or `magweld.` are removed. What was
    decided is lost, what is computed stays. An execution plan has no other form: it is
    an error, and `lower-subgraphs` lowers it.

        %1 = "tile_graph.operator"() ({                    %y = linalg.exp ins(%x ..)
          %y = linalg.exp ins(%x ..)               =>
          gpu.yield %y }) {op_name = "exp_0", tile = ..}
    """

    name: ClassVar[str] = "strip-tile-graph"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the module."""
        for plan in operations_of(module, ForTilesOp):
            raise located_error(plan, "has no form without it: lower-subgraphs first")
        for connect in operations_of(module, ConnectOp):
            connect.operation.results[0].replace_all_uses_with(
                connect.operation.operands[0]
            )
            connect.operation.erase()
        for kind in (OperatorOp, SubgraphOp):
            for op in operations_of(module, kind):
                _inline(op.operation)
        for view in operations_of(module, ir.OpView):
            for name in [n for n in view.operation.attributes if _is_ours(n)]:
                del view.operation.attributes[name]


def _is_ours(attribute: str) -> bool:
    return attribute.startswith(_PREFIXES)


def _inline(op: ir.Operation) -> None:
    """Replace an op by the operations in its region."""
    *body, terminator = list(op.regions[0].blocks[0].operations)
    for nested in body:
        nested.operation.move_before(op)
    for result, value in zip(op.results, terminator.operation.operands, strict=True):
        result.replace_all_uses_with(value)
    op.erase()
