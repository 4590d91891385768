"""Owns reductions that several threads share: combiners, partial results, merging."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import arith, ir, memref
from magweld.passes.gpu.linalg_structure import LoopNest, outputs_of
from magweld.passes.gpu.structure import workgroup_space
from magweld.passes.gpu.thread_layout import ThreadLayout
from magweld.passes.ir.linalg_builder import build_generic


def _integer_range(type_: ir.Type) -> tuple[int, int]:
    width = ir.IntegerType(type_).width
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


# The element that leaves the other operand as it is, by the type of the elements.
_NEUTRAL: dict[str, Callable[[ir.Type], float | int]] = {
    "arith.addf": lambda _: -0.0,  # 0.0 + -0.0 would lose the sign of a zero
    "arith.addi": lambda _: 0,
    "arith.andi": lambda _: -1,
    "arith.maximumf": lambda _: -math.inf,
    "arith.maxnumf": lambda _: -math.inf,
    "arith.maxsi": lambda type_: _integer_range(type_)[0],
    "arith.minimumf": lambda _: math.inf,
    "arith.minnumf": lambda _: math.inf,
    "arith.minsi": lambda type_: _integer_range(type_)[1],
    "arith.mulf": lambda _: 1.0,
    "arith.muli": lambda _: 1,
    "arith.ori": lambda _: 0,
    "arith.xori": lambda _: 0,
}


@dataclass(frozen=True)
class Combiner:
    """The associative operation of a reduction.

    Attributes:
        name: Operation, such as "arith.addf".
        element: Type of its operands.
    """

    name: str
    element: ir.Type

    def neutral(self) -> ir.Attribute:
        """Return the element that changes nothing."""
        value = _NEUTRAL[self.name](self.element)
        if isinstance(self.element, ir.FloatType):
            return ir.FloatAttr.get(self.element, float(value))
        return ir.IntegerAttr.get(self.element, int(value))

    def neutral_constant(self) -> ir.Value:
        """Build the neutral element as a constant."""
        made: ir.Value = arith.ConstantOp(self.element, self.neutral()).result
        return made

    def build(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Build the combination of two elements."""
        made: ir.Value = ir.Operation.create(
            self.name, results=[self.element], operands=[left, right]
        ).result
        return made


@dataclass(frozen=True)
class Partials:
    """Partial results of a reduction, one a thread.

    Attributes:
        buffer: Memref in workgroup memory; the dimensions of the result, of extent
            one where no loop indexes it, then one for each loop of `loops`.
        loops: Reduction loops that threads share.
        combiner: How two partial results become one.
    """

    buffer: Any
    loops: tuple[int, ...]
    combiner: Combiner


def combiner_of(op: Any) -> Combiner | None:
    """Return how a linalg reduction combines, None if threads cannot share it.

    It has one output, and its body ends in `combine(f(inputs), accumulator)`.
    """
    if len(outputs_of(op)) != 1:
        return None
    block = op.regions[0].blocks[0]
    accumulator = block.arguments[len(block.arguments) - 1]
    last = list(block.operations)[-1].operands[0]
    if isinstance(last, ir.BlockArgument) or last.owner.name not in _NEUTRAL:
        return None
    users = [use.owner.operation for use in accumulator.uses]
    if users != [last.owner.operation]:
        return None
    return Combiner(last.owner.name, last.type)


def allocate_partials(
    op: Any, nest: LoopNest, layout: ThreadLayout, combiner: Combiner
) -> Partials:
    """Allocate the partial results of a reduction in front of it."""
    loops = tuple(i for i in nest.reduction if layout.threads[i] > 1)
    written = nest.output_maps[0]
    shape = [1 if loop is None else nest.extents[loop] for loop in written]
    shape += [layout.threads[i] for i in loops]
    type_ = ir.MemRefType.get(shape, combiner.element, memory_space=workgroup_space())
    with ir.InsertionPoint(op), op.location:
        return Partials(memref.AllocOp(type_, [], []).memref, loops, combiner)


def build_merge(op: Any, nest: LoopNest, partials: Partials) -> Any:
    """Build the operation that merges partial results into the output of `op`."""
    rank = len(nest.parallel)
    total = rank + len(partials.loops)
    dims = [ir.AffineDimExpr.get(i) for i in range(total)]
    zero = ir.AffineConstantExpr.get(0)
    written = [
        zero if loop is None else dims[nest.parallel.index(loop)]
        for loop in nest.output_maps[0]
    ]
    maps = [
        ir.AffineMap.get(total, 0, read) for read in (written + dims[rank:], written)
    ]

    def body(values: Sequence[ir.Value]) -> list[ir.Value]:
        return [partials.combiner.build(*values)]

    with ir.InsertionPoint(op), op.location:
        return build_generic(
            [partials.buffer],
            [outputs_of(op)[0]],
            maps,
            body,
            reduced=range(rank, total),
        )
