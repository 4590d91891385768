"""Owns order-register-loops: reductions into registers run their reduction outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import func, ir, structured_transform
from magweld.passes.gpu.linalg_structure import (
    linalg_operations_in,
    loop_nest_of,
    outputs_of,
)
from magweld.passes.gpu.structure import is_in_space, kernels_of, private_space
from magweld.passes.gpu.transform_script import (
    apply_script,
    match_tagged,
    remove_tags,
)
from magweld.passes.infrastructure.base import Pass

_TAG = "magweld.interchange"


@dataclass(frozen=True)
class OrderRegisterLoops(Pass):
    """Move the reduction loops of operations on register tiles outermost.

    With the loops over the tile inside, an operand that is read once in a step serves
    all elements of the tile that need it: `linalg.matmul` on a private accumulator
    becomes a `linalg.generic` with the loops (k, m, n).
    """

    name: ClassVar[str] = "order-register-loops"

    def run(self, module: Any) -> None:
        """Reorder the operations of all kernels."""
        for number in range(len(kernels_of(module))):
            _run_on_kernel(kernels_of(module)[number])


def _run_on_kernel(kernel: func.FuncOp) -> None:
    orders: list[list[int]] = []
    i64 = ir.IntegerType.get_signless(64)
    for op in linalg_operations_in(kernel):
        nest = loop_nest_of(op)
        order = [*nest.reduction, *sorted(nest.parallel)]
        is_private = is_in_space(outputs_of(op)[0], private_space())
        if is_private and nest.reduction and order != sorted(order):
            op.operation.attributes[_TAG] = ir.IntegerAttr.get(i64, len(orders))
            orders.append(order)
    if not orders:
        return

    def build(root: ir.Value) -> None:
        for number, order in enumerate(orders):
            target = match_tagged(root, _TAG, ir.IntegerAttr.get(i64, number))
            generic = structured_transform.GeneralizeOp(target)
            structured_transform.InterchangeOp(
                generic.transformed, iterator_interchange=order
            )

    apply_script(kernel, build)
    remove_tags(kernel, _TAG)
