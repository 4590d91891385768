"""Owns what runs in one sweep of register tiles: a reduction and what is around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from magweld.bindings import func, ir, linalg
from magweld.passes.cpu.generic_forms import (
    has_reduction,
    is_float_arithmetic,
    maps_of,
)
from magweld.passes.cpu.loop_nest import Access, LoopNest, read_access, read_loop_nest
from magweld.passes.ir.utils import operations_of

SWEEP = "magweld.sweep"


@dataclass(frozen=True)
class Sweep:
    """Operations whose results stay in registers from one to the next.

    Attributes:
        root: The operation whose loops are walked.
        fill: What gives the result of the root its first value, if that is part of it.
        finish: What makes something of every element of the result, likewise.
    """

    root: ir.Operation
    fill: ir.Operation | None = None
    finish: ir.Operation | None = None

    @property
    def operations(self) -> tuple[ir.Operation, ...]:
        """The operations in order."""
        return tuple(op for op in (self.fill, self.root, self.finish) if op is not None)

    @property
    def last(self) -> ir.Operation:
        """The operation in whose place the sweep runs."""
        return self.finish or self.root

    @property
    def result(self) -> ir.Value:
        """The buffer of the root's result."""
        return self.root.operands[len(self.root.operands) - 1]

    def nest(self) -> LoopNest:
        """Return the nest of the root, with what the others read and write beside.

        Raises:
            NotALoopNest: The root or another one is no static loop nest.
        """
        nest = read_loop_nest(self.root)
        if self.finish is None:
            return nest
        return replace(
            nest,
            beside=finish_accesses(self.root, self.finish),
            is_float=nest.is_float and is_float_arithmetic(_body(self.finish)),
        )


def _body(op: ir.Operation) -> ir.Block:
    (block,) = op.regions[0].blocks
    return block


def finish_accesses(root: ir.Operation, finish: ir.Operation) -> tuple[Access, ...]:
    """Return how the operands of what finishes are addressed in the loops of the root.

    Raises:
        NotALoopNest: An address is not linear.
    """
    place = list(finish.operands).index(root.operands[len(root.operands) - 1])
    made, read = maps_of(root)[-1], maps_of(finish)[place]
    # The loop of the root for each loop of what finishes.
    loops = {
        inner.position: outer.position
        for outer, inner in zip(made.results, read.results, strict=True)
    }
    accesses = []
    for operand, map_, argument in zip(
        finish.operands, maps_of(finish), _body(finish).arguments, strict=True
    ):
        access = read_access(operand, map_, bool(list(argument.uses)))
        strides = [0] * made.n_dims
        for loop, stride in enumerate(access.strides):
            strides[loops[loop]] = stride
        accesses.append(replace(access, strides=tuple(strides)))
    return tuple(accesses)


def sweeps_of(function: func.FuncOp) -> Iterator[Sweep]:
    """Yield the sweeps of a kernel: marked operations together, others alone."""
    marked: dict[int, list[ir.Operation]] = {}
    for op in operations_of(function, linalg.GenericOp):
        if SWEEP in op.attributes:
            number = ir.IntegerAttr(op.attributes[SWEEP]).value
            marked.setdefault(number, []).append(op.operation)
        else:
            yield Sweep(op.operation)
    for operations in marked.values():
        roots = [n for n, op in enumerate(operations) if has_reduction(op)]
        before, after = operations[: roots[0]], operations[roots[0] + 1 :]
        yield Sweep(operations[roots[0]], *(before or [None]), *(after or [None]))
