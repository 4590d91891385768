"""Owns hoist-invariants: what an epilogue computes once a row comes before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from magweld.bindings import ir, memref
from magweld.passes.analysis.index_maps import loop_extents, loops_of
from magweld.passes.cpu.buffer_roots import last_use_before
from magweld.passes.cpu.generic_forms import has_reduction, maps_of
from magweld.passes.cpu.kernels import generics_of
from magweld.passes.cpu.loop_nest import is_product
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import ValueMap, clone_mapped
from magweld.passes.ir.linalg_builder import build_generic

# How often each value is read from memory instead of being computed, at least.
LEAST_READS = 8
_MATH = "math."
_ARITHMETIC = ("arith.", _MATH)


@dataclass(frozen=True)
class HoistInvariants(Pass):
    """Compute what stays the same along some loops of an epilogue before it.

    Done where an element-wise operation that reads the result of a product has math
    functions of operands that do not move with all of its loops. What they take is in a
    buffer then, for the loops that they move with, and the rest is arithmetic, which
    `fuse-epilogues` joins with the product. A batch norm behind a convolution has a
    factor and a term for each channel:

        y[c, p] = t[c, p] * (rsqrt(v[c]) * w[c]) + b[c]
            =>   f[c] = rsqrt(v[c]) * w[c]
                 y[c, p] = t[c, p] * f[c] + b[c]
    """

    name: ClassVar[str] = "hoist-invariants"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the epilogues of all kernels of the module."""
        for _, op in generics_of(module):
            if _is_epilogue(op):
                found = _Invariants.of(op)
                if found is not None:
                    with op.location:
                        found.hoist()


def _is_epilogue(op: ir.Operation) -> bool:
    """Whether an operation makes something of each element of a product."""
    *_, last = maps_of(op)
    if has_reduction(op) or not last.is_permutation:
        return False
    if not all(one.name.startswith(_ARITHMETIC) for one in _body(op)[:-1]):
        return False
    inputs = int(op.attributes["operandSegmentSizes"][0])
    buffers = [v for v in list(op.operands)[:inputs] if _is_buffer(v)]
    makers = (last_use_before(op, value) for value in buffers)
    return any(m is not None and m.name == op.name and is_product(m) for m in makers)


def _is_buffer(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _body(op: ir.Operation) -> list[ir.Operation]:
    return [inner.operation for inner in op.regions[0].blocks[0].operations]


@dataclass(frozen=True)
class _Invariants:
    """The operations of an epilogue that stay the same along some of its loops.

    Attributes:
        op: The epilogue.
        loops: The loops that they move with, rising.
        extents: Of these loops.
        members: The operations, in order.
    """

    op: ir.Operation
    loops: tuple[int, ...]
    extents: tuple[int, ...]
    members: tuple[ir.Operation, ...]

    @classmethod
    def of(cls, op: ir.Operation) -> _Invariants | None:
        """Return those of an epilogue that are worth it, None without any."""
        maps = maps_of(op)
        shapes = [tuple(v.type.shape) if _is_buffer(v) else () for v in op.operands]
        extents = loop_extents(maps, shapes)
        if not extents:
            return None
        moves = _moves(op, maps)
        sets = {frozenset(m) for m in moves.values()}
        points = prod(extents)
        few = [
            loops
            for loops in sets
            if loops and prod(extents[d] for d in loops) * LEAST_READS <= points
        ]
        found = [cls._along(op, loops, moves, extents) for loops in few]
        useful = [one for one in found if any(_MATH in m.name for m in one.members)]
        return max(useful, key=lambda one: len(one.members), default=None)

    @classmethod
    def _along(
        cls,
        op: ir.Operation,
        loops: frozenset[int],
        moves: dict[Any, frozenset[int]],
        extents: Sequence[int],
    ) -> _Invariants:
        rising = tuple(sorted(loops))
        members = tuple(
            one
            for one in _body(op)[:-1]
            if 0 < len(moves[one.results[0]] & loops) and moves[one.results[0]] <= loops
        )
        return cls(op, rising, tuple(extents[d] for d in rising), members)

    def hoist(self) -> None:
        """Compute them before, and read them in the epilogue."""
        results = self._results()
        if not all(isinstance(v.type, ir.F32Type | ir.F64Type) for v in results):
            return
        with ir.InsertionPoint(self.op):
            alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
            buffers = [
                memref.AllocOp(
                    ir.MemRefType.get(self.extents, value.type),
                    [],
                    [],
                    alignment=alignment,
                ).result
                for value in results
            ]
            self._compute(results, buffers)
            self._read(results, buffers)
        self.op.erase()

    def _results(self) -> list[ir.Value]:
        """Return the values that others of the epilogue read."""
        return [
            value
            for one in self.members
            for value in one.results
            if any(use.owner.operation not in self.members for use in value.uses)
        ]

    def _compute(self, results: list[ir.Value], buffers: list[ir.Value]) -> None:
        """Emit what computes the values."""
        inputs = self._inputs(list(self.members))
        maps = [self._inner(map_) for _, _, map_ in inputs]
        identity = ir.AffineMap.get_identity(len(self.loops))

        def body(arguments: Sequence[Any]) -> list[Any]:
            values = ValueMap()
            for (argument, _, _), new in zip(inputs, arguments, strict=False):
                values[argument] = new
            for one in self.members:
                clone_mapped(one, values)
            return [values[value] for value in results]

        operands = [operand for _, operand, _ in inputs]
        build_generic(operands, buffers, [*maps, *[identity] * len(buffers)], body)

    def _read(self, results: list[ir.Value], buffers: list[ir.Value]) -> None:
        """Emit the epilogue that reads the values."""
        *others, terminator = [o for o in _body(self.op) if o not in self.members]
        inputs = self._inputs([*others, terminator])
        count = int(self.op.attributes["operandSegmentSizes"][0])
        outputs, maps = list(self.op.operands)[count:], maps_of(self.op)
        loops = [ir.AffineExpr.get_dim(d) for d in self.loops]
        along = ir.AffineMap.get(maps[0].n_dims, 0, loops)

        def body(arguments: Sequence[Any]) -> list[Any]:
            values = ValueMap()
            known = [*(argument for argument, _, _ in inputs), *results]
            for old, new in zip(known, arguments, strict=False):
                values[old] = new
            for one in others:
                clone_mapped(one, values)
            return [values[value] for value in terminator.operands]

        made = build_generic(
            [*(operand for _, operand, _ in inputs), *buffers],
            outputs,
            [*(m for _, _, m in inputs), *[along] * len(buffers), *maps[count:]],
            body,
        )
        kept = ("indexing_maps", "iterator_types", "operandSegmentSizes")
        for name in self.op.attributes:
            if name not in kept:
                made.operation.attributes[name] = self.op.attributes[name]

    def _inputs(
        self, operations: list[ir.Operation]
    ) -> list[tuple[ir.Value, ir.Value, ir.AffineMap]]:
        """Return the inputs that operations read: argument, operand and map."""
        used = {value for one in operations for value in one.operands}
        count = int(self.op.attributes["operandSegmentSizes"][0])
        arguments = list(self.op.regions[0].blocks[0].arguments)[:count]
        found = zip(arguments, self.op.operands, maps_of(self.op), strict=False)
        return [one for one in found if one[0] in used]

    def _inner(self, map_: ir.AffineMap) -> ir.AffineMap:
        """Return a map over the loops of the values alone."""
        exprs = [ir.AffineExpr.get_constant(0)] * map_.n_dims
        for number, loop in enumerate(self.loops):
            exprs[loop] = ir.AffineExpr.get_dim(number)
        inner = ir.AffineMap.get(len(self.loops), 0, exprs)
        results = [expr.compose(inner) for expr in map_.results]
        return ir.AffineMap.get(len(self.loops), 0, results)


def _moves(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> dict[Any, frozenset[int]]:
    """Return the loops that each value of an epilogue moves with."""
    inputs = int(op.attributes["operandSegmentSizes"][0])
    arguments = op.regions[0].blocks[0].arguments
    every = frozenset(range(maps[0].n_dims))
    found: dict[Any, frozenset[int]] = {
        argument: frozenset(loops_of(map_)) if number < inputs else every
        for number, (argument, map_) in enumerate(zip(arguments, maps, strict=True))
    }
    for one in _body(op)[:-1]:
        with_ = [found.get(value, frozenset()) for value in one.operands]
        found.update(dict.fromkeys(one.results, frozenset().union(*with_)))
    return found
