"""Owns rings in shared memory: buffers with a slot for each step that is on its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import affine, ir, memref, scf
from magweld.passes.gpu.thread_slices import strided_subview
from magweld.passes.ir.constants import constant_number


@dataclass(frozen=True)
class StepLoop:
    """A sequential loop whose bounds are known.

    Attributes:
        op: The `scf.for`.
        lower: Its first index.
        upper: What its indices are below.
        step: Distance of its indices.
    """

    op: Any
    lower: int
    upper: int
    step: int

    @staticmethod
    def of(op: scf.ForOp) -> StepLoop | None:
        """Return a loop, None where a bound is no constant or values are carried."""
        bounds = [constant_number(v) for v in (op.lowerBound, op.upperBound, op.step)]
        if None in bounds or list(op.results):
            return None
        lower, upper, step = (int(bound) for bound in bounds if bound is not None)
        return StepLoop(op, lower, upper, step)

    @property
    def indices(self) -> range:
        """The index of each iteration."""
        return range(self.lower, self.upper, self.step)

    def slot(self, ring: ir.Value, rows: int, slots: int) -> ir.Value:
        """Build the slot of an iteration, at the insertion point in the loop.

        Args:
            ring: A buffer whose first dimension has `rows` for each slot.
            rows: Extent of a slot along it.
            slots: How many there are; iterations take one after another, in turn.
        """
        index = ir.AffineExpr.get_dim(0) - self.lower
        number = ir.AffineExpr.get_floor_div(index, self.step) % slots
        map_ = ir.AffineMap.get(1, 0, [number * rows])
        first = affine.AffineApplyOp(map_, [self.op.induction_variable]).result
        shape = [rows, *list(ring.type.shape)[1:]]
        rest = [None] * (len(shape) - 1)
        return strided_subview(ring, [first, *rest], shape, [1] * len(shape))


@dataclass(frozen=True)
class RingSlot:
    """The rows of a shared buffer that a view begins in.

    Attributes:
        first: The first row; a function of the index of one loop.
        rows: How many there are.
    """

    first: ir.Value
    rows: int

    @staticmethod
    def of(value: ir.Value) -> RingSlot | None:
        """Return the slot that a memref is a part of, None for other memrefs."""
        found = None
        while not isinstance(value, ir.BlockArgument):
            op = value.owner.opview
            if isinstance(op, memref.AllocOp | memref.ViewOp):
                return found
            if not isinstance(op, memref.SubViewOp):
                found = None
            elif any(op.static_offsets) or set(op.static_strides) - {1}:
                found = _slot_of(op)
            value = op.operands[0]
        return None

    def is_apart_from(self, other: RingSlot) -> bool:
        """Tell whether two slots have no row in common in any iteration.

        Both are of one ring, and of the same iteration of a loop.
        """
        own, its = _variables(self.first), _variables(other.first)
        if own is None or its is None or len(own | its) > 1:
            return False
        variable = next(iter(own | its), None)
        for index in _indices(variable):
            a, b = _value(self.first, index), _value(other.first, index)
            if a < b + other.rows and b < a + self.rows:
                return False
        return True


def _slot_of(op: memref.SubViewOp) -> RingSlot | None:
    """Return the slot that a slice is, None for one that begins elsewhere in rows."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    row, *others = op.static_offsets
    if row != marker or any(others) or op.static_strides[0] != 1:
        return None
    return RingSlot(op.offsets[0], op.static_sizes[0])


def _variables(value: ir.Value) -> set[ir.BlockArgument] | None:
    """Return the variables of loops that decide an index, None where others do."""
    if constant_number(value) is not None:
        return set()
    if isinstance(value, ir.BlockArgument):
        loop = value.owner.owner.opview
        is_known = isinstance(loop, scf.ForOp) and StepLoop.of(loop) is not None
        return {value} if is_known and value.arg_number == 0 else None
    op = value.owner.opview
    if not isinstance(op, affine.AffineApplyOp) or len(op.operands) != 1:
        return None
    return _variables(op.operands[0])


def _indices(variable: ir.BlockArgument | None) -> range:
    """Return what the variable of a loop is in its iterations."""
    loop = None if variable is None else StepLoop.of(variable.owner.owner.opview)
    return range(1) if loop is None else loop.indices


def _value(value: ir.Value, index: int) -> int:
    """Return an index where the variable that decides it is `index`."""
    number = constant_number(value)
    if number is not None:
        return int(number)
    if isinstance(value, ir.BlockArgument):
        return index
    apply = value.owner.opview
    return _evaluated(apply.map.value.results[0], _value(apply.operands[0], index))


def _evaluated(expression: ir.AffineExpr, number: int) -> int:
    """Return what an expression of one dimension, or one symbol, is for a number."""
    if isinstance(expression, ir.AffineConstantExpr):
        return int(expression.value)
    if isinstance(expression, ir.AffineDimExpr | ir.AffineSymbolExpr):
        return number
    left, right = (
        _evaluated(part, number) for part in (expression.lhs, expression.rhs)
    )
    if isinstance(expression, ir.AffineAddExpr):
        return left + right
    if isinstance(expression, ir.AffineMulExpr):
        return left * right
    if isinstance(expression, ir.AffineModExpr):
        return left % right
    if isinstance(expression, ir.AffineFloorDivExpr):
        return left // right
    return -(-left // right)
