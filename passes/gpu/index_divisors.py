"""Owns what divides an index of generated code in all threads and blocks."""

from __future__ import annotations

import math
from typing import Any

from magweld.bindings import affine, ir, scf
from magweld.passes.ir.constants import constant_number

_SUMS = frozenset({"arith.addi", "arith.subi"})


def divisor_of(value: ir.Value) -> int:
    """Return a number that divides all values of an index; 0 if the index is 0.

    Sums, products, selections, affine maps and variables of sequential loops are
    followed; any other index is divided by 1.
    """
    if isinstance(value, ir.BlockArgument):
        return _of_loop_variable(value)
    number = constant_number(value)
    if number is not None:
        return abs(int(number))
    op = value.owner.opview
    name = op.operation.name
    operands = op.operation.operands
    if name in _SUMS:
        return math.gcd(divisor_of(operands[0]), divisor_of(operands[1]))
    if name == "arith.muli":
        return divisor_of(operands[0]) * divisor_of(operands[1])
    if name == "arith.select":
        return math.gcd(divisor_of(operands[1]), divisor_of(operands[2]))
    if isinstance(op, affine.AffineApplyOp):
        map_ = op.map.value
        divisors = [divisor_of(operand) for operand in operands]
        return _of_expression(map_.results[0], divisors, map_.n_dims)
    return 1


def _of_loop_variable(value: ir.BlockArgument) -> int:
    loop: Any = value.owner.owner.opview
    if isinstance(loop, scf.ForOp) and value.arg_number == 0:
        return math.gcd(divisor_of(loop.lowerBound), divisor_of(loop.step))
    if isinstance(loop, affine.AffineForOp) and value.arg_number == 0:
        lower = loop.lowerBoundMap.value.results[0]
        step = int(ir.IntegerAttr(loop.step).value)
        if isinstance(lower, ir.AffineConstantExpr):
            return math.gcd(abs(lower.value), step)
    return 1


def _of_expression(expression: ir.AffineExpr, divisors: list[int], dims: int) -> int:
    if isinstance(expression, ir.AffineConstantExpr):
        return abs(int(expression.value))
    if isinstance(expression, ir.AffineDimExpr):
        return int(divisors[expression.position])
    if isinstance(expression, ir.AffineSymbolExpr):
        return int(divisors[dims + expression.position])
    if isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        left, right = (
            _of_expression(part, divisors, dims)
            for part in (expression.lhs, expression.rhs)
        )
        is_sum = isinstance(expression, ir.AffineAddExpr)
        return math.gcd(left, right) if is_sum else left * right
    if isinstance(expression, ir.AffineModExpr):
        # The remainder is a difference of both.
        left, right = (
            _of_expression(part, divisors, dims)
            for part in (expression.lhs, expression.rhs)
        )
        return math.gcd(left, right)
    return 1
