"""Owns expand-bags: bags whose sizes a tensor tells become loops over their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from magweld.bindings import arith, func, ir, linalg, scf, tensor
from magweld.dialects.tile_graph import BAGS
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.tensor_slices import extract_slice
from magweld.passes.ir.utils import callee_of, functions_of, operations_of


@dataclass(frozen=True)
class ExpandBags(Pass):
    """Replace calls of functions with `magweld.bags` by loops over the rows of a bag.

    Such a function has no body. It takes a table of rows, indices into it, and bounds:
    bag number i has the indices from `bounds[i]` up to `bounds[i + 1]`. With `sizes` it
    takes other bounds, whose differences a mean divides by, and with `weights` a factor
    for each index. It returns a row for each bag: their sum, their mean, or in each
    column the first of the greatest. Indices that are `padding` are not in a bag. Who
    calls it has checked the indices and the bounds. Halves are added in f32; with
    `ties_away` a sum of bf16 that lies between two of them is rounded away from zero,
    and not to the even one.

        %r = call @bags(%t, %i, %b) : (tensor<9x64xf32>, tensor<20xi64>,
                                       tensor<5xi64>) -> tensor<4x64xf32>

    becomes, for `mode = "sum"`,

        %r = linalg.generic ins(%b[0 to 4], %b[1 to 5]) outs(%empty) {
        ^bb0(%first: i64, %behind: i64, %out: f32):
          %d = linalg.index 1
          %sum = scf.for %j = %first to %behind iter_args(%s = 0.0) {
            %row = tensor.extract %i[%j]
            %x = tensor.extract %t[%row, %d]
            scf.yield %s + %x
          }
          linalg.yield %sum
        }

    Rows are added one behind the other, as torch adds them.
    """

    name: ClassVar[str] = "expand-bags"

    def run(self, module: Any) -> None:
        """Rewrite all calls, and remove what is no longer called."""
        bags = {f.name.value: f for f in functions_of(module) if BAGS in f.attributes}
        for function in functions_of(module):
            for call in operations_of(function, func.CallOp) if bags else ():
                declared = bags.get(callee_of(call.operation))
                if declared is not None:
                    _replace(call, _Bags.of(call, declared.attributes[BAGS]))
        for declared in bags.values():
            declared.operation.erase()


@dataclass(frozen=True)
class _Bags:
    """The operands of a call, and what it computes.

    Attributes:
        table, indices, bounds: As the pass tells.
        sizes, weights: The same; None where the call has none.
        mode: "sum", "mean" or "max".
        padding: The index that is skipped, negative for none.
        away: Whether ties are rounded away from zero.
    """

    table: Any
    indices: Any
    bounds: Any
    sizes: Any
    weights: Any
    mode: str
    padding: int
    away: bool

    @classmethod
    def of(cls, call: Any, described: ir.DictAttr) -> Self:
        table, indices, bounds, *others = call.operation.operands
        sizes, weights = (
            others.pop(0) if name in described else None
            for name in ("sizes", "weights")
        )
        mode = ir.StringAttr(described["mode"]).value
        padding = ir.IntegerAttr(described["padding"]).value
        away = "ties_away" in described
        return cls(table, indices, bounds, sizes, weights, mode, padding, away)


def _replace(call: Any, bags: _Bags) -> None:
    (result,) = call.operation.results
    count, columns = result.type.shape
    element = result.type.element_type
    with ir.InsertionPoint(call), call.location:
        operands = [
            extract_slice(bounds, [first], [count], [count])
            for bounds in (bags.bounds, bags.sizes)
            if bounds is not None
            for first in (0, 1)
        ]
        loops = [ir.AffineDimExpr.get(number) for number in range(2)]
        by_bag, whole = (ir.AffineMap.get(2, 0, kept) for kept in (loops[:1], loops))
        made = build_generic(
            operands,
            [tensor.empty([count, columns], element)],
            [by_bag] * len(operands) + [whole],
            lambda values: [_bag(bags, element, values[:-1])],
        )
    result.replace_all_uses_with(made.results[0])
    call.operation.erase()


def _bag(bags: _Bags, element: Any, bounds: Sequence[Any]) -> Any:
    """Emit one column of one bag; bounds are of the rows, then of the size."""
    column = linalg.IndexOp(1).result
    first, behind = (_index(value) for value in bounds[:2])
    wide = _wide(element)
    zero = arith.constant(wide, 0.0)
    # What the loop carries: the row so far, how many indices were padding, whether a
    # row has been there.
    begun = [zero]
    counted = bags.mode == "mean" and bags.padding >= 0
    if counted:
        begun.append(arith.constant(ir.IndexType.get(), 0))
    if bags.mode == "max":
        begun.append(arith.constant(ir.IntegerType.get_signless(1), 0))
    step = arith.constant(ir.IndexType.get(), 1)
    loop = scf.ForOp(first, behind, step, begun)
    with ir.InsertionPoint(loop.body):
        position = loop.induction_variable
        number = tensor.extract(bags.indices, [position])
        row = tensor.extract(bags.table, [_index(number), column])
        kept = None
        # Torch rounds weighted rows before it adds them, but in its kernel for f32
        # without padding: what is chosen is not part of a fused multiply-add. No index
        # is negative.
        rounds = bags.weights is not None and wide == ir.F64Type.get()
        if bags.padding >= 0 or rounds:
            padding = arith.constant(number.type, bags.padding)
            kept = arith.cmpi(arith.CmpIPredicate.ne, number, padding)
        carried = list(loop.inner_iter_args)
        if bags.mode == "max":
            scf.YieldOp(_greater(_widened(row, wide), kept, *carried))
        else:
            term = _widened(row, wide)
            if bags.weights is not None:
                factor = tensor.extract(bags.weights, [position])
                term = arith.mulf(term, _widened(factor, wide))
            if kept is not None:
                # Sums begin with 0.0 and never are -0.0.
                term = arith.select(kept, term, zero)
            total = arith.addf(carried[0], term)
            scf.YieldOp([total, *_counted(kept, *carried[1:])])
    narrow = _narrowed_away if bags.away else _narrowed
    total = narrow(loop.results[0], element)
    if bags.mode != "mean":
        return total
    first, behind = map(_index, bounds[-2:])
    size = arith.subi(behind, first)
    if counted:
        size = arith.subi(size, loop.results[1])
    least = arith.constant(ir.IndexType.get(), 1)
    size = arith.index_cast(ir.IntegerType.get_signless(64), arith.maxsi(size, least))
    # Halves have no conversion of whole numbers; torch rounds these twice as well.
    divisor = _widened(_narrowed(arith.sitofp(wide, size), element), wide)
    return _narrowed(arith.divf(_widened(total, wide), divisor), element)


def _greater(row: Any, kept: Any, best: Any, found: Any) -> list[Any]:
    """Emit the greater of two rows: the first is greater than none."""
    above = arith.cmpf(arith.CmpFPredicate.OGT, row, best)
    taken = arith.select(above, row, best)
    taken = arith.select(found, taken, row)
    true = arith.constant(found.type, 1)
    if kept is None:
        return [taken, true]
    return [arith.select(kept, taken, best), arith.select(kept, true, found)]


def _counted(kept: Any, *skipped: Any) -> list[Any]:
    """Emit how many indices were skipped, where that is carried."""
    return [
        arith.select(kept, count, arith.addi(count, arith.constant(count.type, 1)))
        for count in skipped
    ]


def _index(value: Any) -> Any:
    return arith.index_cast(ir.IndexType.get(), value)


def _wide(element: Any) -> Any:
    return ir.F32Type.get() if ir.FloatType(element).width < 32 else element


def _widened(value: Any, wide: Any) -> Any:
    return value if value.type == wide else arith.extf(wide, value)


def _narrowed(value: Any, element: Any) -> Any:
    return value if value.type == element else arith.truncf(element, value)


def _narrowed_away(value: Any, element: Any) -> Any:
    """Round f32 to bf16, ties away from zero (IEEE 754-2019, section 4.3.1).

    Half a unit of bf16 is added to the bits of the magnitude, and the rest cut off.
    Bits of what is no number, whose lower half is zero in a sum of bf16, stay such.
    """
    bits, half = (ir.IntegerType.get_signless(width) for width in (32, 16))
    added = arith.addi(arith.bitcast(bits, value), arith.constant(bits, 1 << 15))
    kept = arith.shrui(added, arith.constant(bits, 16))
    return arith.bitcast(element, arith.trunci(half, kept))
