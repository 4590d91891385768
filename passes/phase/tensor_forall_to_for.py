"""Owns tensor-forall-to-for: loops over tiles of tensors become sequential."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from magweld.bindings import arith, func, ir, scf, tensor
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.utils import forall_grid, located_error, operations_of


@dataclass(frozen=True)
class TensorForallToFor(FunctionPass):
    """Turn every `scf.forall` on tensors into `scf.for` loops, one a dimension.

    Upstream's `scf-forall-to-for` does so on buffers only, and some compilers take no
    `scf.forall` outside of what they form themselves. Tiles are computed in their
    order; a tensor that they write is carried from one to the next. Loops with bounds
    that are no constants are an error.

        %r = scf.forall (%i) = (0) to (64)      %r = scf.for %i = %c0 to %c64 step %c16
            step (16) shared_outs(%o = %e) {        iter_args(%o = %e) {
          %t = ..                           =>    %t = ..
          scf.forall.in_parallel {                %n = tensor.insert_slice %t into %o
            tensor.parallel_insert_slice          scf.yield %n
              %t into %o } }                    }
    """

    name: ClassVar[str] = "tensor-forall-to-for"

    def run_on_function(self, function: func.FuncOp) -> None:
        """Rewrite the loops of one function, inner ones first."""
        for forall in reversed(operations_of(function, scf.ForallOp)):
            if len(forall.operation.results):
                with ir.InsertionPoint(forall), forall.location:
                    _replace(forall)


def _replace(forall: scf.ForallOp) -> None:
    grid = forall_grid(forall)
    if grid is None:
        raise located_error(forall, "expected constant bounds")
    outs = len(forall.operation.results)
    carried = list(forall.operation.operands)[-outs:]
    loops: list[scf.ForOp] = []
    point = ir.InsertionPoint(forall)
    uppers = list(forall.attributes["staticUpperBound"])
    for (low, step, _), upper in zip(grid, uppers, strict=True):
        with point:
            bounds = [_constant(number) for number in (low, upper, step)]
            loop = scf.ForOp(*bounds, carried)
        loops.append(loop)
        carried = list(loop.inner_iter_args)
        point = ir.InsertionPoint(loop.body)
    _fill(forall, loops)
    for outer, inner in pairwise(loops):
        with ir.InsertionPoint(outer.body):
            scf.YieldOp(inner.results_)
    for old, new in zip(forall.operation.results, loops[0].results_, strict=True):
        old.replace_all_uses_with(new)
    forall.operation.erase()


def _fill(forall: scf.ForallOp, loops: list[scf.ForOp]) -> None:
    """Move the body of the forall into the innermost loop."""
    block = forall.operation.regions[0].blocks[0]
    arguments = [loop.induction_variable for loop in loops]
    arguments += list(loops[-1].inner_iter_args)
    for old, new in zip(block.arguments, arguments, strict=True):
        old.replace_all_uses_with(new)
    *body, terminator = list(block.operations)
    with ir.InsertionPoint(loops[-1].body):
        current = {value: value for value in loops[-1].inner_iter_args}
        inserts = list(terminator.operation.regions[0].blocks[0].operations)
        made = []
        for insert in inserts:
            made.append(_insert(insert.operation, current))
        end = scf.YieldOp([current[value] for value in loops[-1].inner_iter_args])
    first = made[0] if made else end.operation
    for op in body:
        op.operation.move_before(first)


def _insert(op: ir.Operation, current: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Emit the insertion into what the tensor is by now."""
    source, destination, *dynamic = list(op.operands)
    names = ("static_offsets", "static_sizes", "static_strides", "operandSegmentSizes")
    made = ir.Operation.create(
        tensor.InsertSliceOp.OPERATION_NAME,
        results=[destination.type],
        operands=[source, current[destination], *dynamic],
        attributes={name: op.attributes[name] for name in names},
        loc=op.location,
    )
    current[destination] = made.results[0]
    return made


def _constant(number: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), number).result
