"""Owns the pass that divides by the sums of a softmax after the product, not before."""

from __future__ import annotations

import itertools
import math
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from magweld.bindings import func, ir, linalg, tensor
from magweld.passes.analysis.body_forms import body_form
from magweld.passes.infrastructure.base import FunctionPass, apply_patterns
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.constants import constant_number, filled_with
from magweld.passes.ir.linalg_builder import iterator_array, map_array
from magweld.passes.ir.utils import add_remark, operations_of
from magweld.passes.tiling.regions import BodyForm

_SUMS = (BodyForm.SUM, BodyForm.WIDENED_SUM)
# Operations between the sums of a softmax and what its rows are scaled by.
MOST_STEPS = 8

_Compare = Callable[[float, float], float]
# Comparisons of numbers that are not NaN, by operation and predicate.
_FLOATS: tuple[_Compare, ...] = (
    operator.eq,
    operator.gt,
    operator.ge,
    operator.lt,
    operator.le,
    operator.ne,
)
_PREDICATES: dict[str, dict[int, _Compare]] = {
    "arith.cmpf": {
        **dict(enumerate(_FLOATS, start=1)),
        **dict(enumerate(_FLOATS, start=8)),
    },
    "arith.cmpi": {0: operator.eq, 1: operator.ne},
}
_CHOICES: dict[str, _Compare] = {"arith.maximumf": max, "arith.minimumf": min}


@dataclass(frozen=True)
class _Scaling:
    """Exponentials times, or divided by, something for every row of them."""

    op: Any
    exponentials: Any
    factors: Any
    index: Any  # of the factors, over the dims of the exponentials


def defer(op: linalg.GenericOp, rewriter: Any, *, rounded: bool = False) -> bool:
    """Scale the rows of a product instead of those of its operand."""
    if body_form(op.operation) not in _SUMS or len(op.inputs) != 2:
        return False
    for number, value in enumerate(op.inputs):
        rounding = _rounding(value) if rounded else None
        scaling = _scaling(value if rounding is None else rounding.inputs[0])
        if scaling is None or _why_not_softmax(scaling):
            continue
        index = _index_in_result(op, number, scaling.index)
        if index is None or _size(op.results[0]) > _size(value):
            continue
        factor = scaling.exponentials
        if rounding is not None:
            factor = _rounded(rounding, factor)
        product = op.operation.clone()
        product.operands[number] = factor
        scaled = _rescale(product.results[0], scaling, index)
        rewriter.replace_op(op.operation, scaled)
        return True
    return False


def _refusals(op: linalg.GenericOp) -> Iterator[str]:
    """Yield why rows of operands are scaled, and not those of a product."""
    if body_form(op.operation) is BodyForm.SUM and len(op.inputs) == 2:
        scalings = (_scaling(value) for value in op.inputs)
        yield from filter(None, (_why_not_softmax(s) for s in scalings if s))


def _size(value: Any) -> int:
    return math.prod(ir.RankedTensorType(value.type).shape)


def _generic(value: Any) -> Any | None:
    producer = defining_op(value)
    return producer if isinstance(producer, linalg.GenericOp) else None


def _maps(op: linalg.GenericOp) -> list[Any]:
    return [attribute.value for attribute in op.indexing_maps]


def _is_identity(map_: Any) -> bool:
    return bool(map_ == ir.AffineMap.get_identity(map_.n_dims))


def _scaling(value: Any) -> _Scaling | None:
    """Read a value as normalised exponentials that nobody else wants."""
    op = _generic(value)
    if op is None or len(op.inputs) != 2 or len(list(value.uses)) != 1:
        return None
    *operations, _ = op.regions[0].blocks[0].operations
    names = _body_names(op)
    arguments = list(op.regions[0].blocks[0].arguments)[:2]
    if names not in (["arith.mulf"], ["arith.divf"]):
        return None
    if set(operations[0].operands) != set(arguments):
        return None
    orders = [(0, 1)] if names == ["arith.divf"] else [(0, 1), (1, 0)]
    if names == ["arith.divf"] and list(operations[0].operands) != arguments:
        return None
    *maps, result = _maps(op)
    for rows, factors in orders:
        found = _Scaling(op, op.inputs[rows], op.inputs[factors], maps[factors])
        exponential = _generic(found.exponentials)
        if not (_is_identity(result) and _is_identity(maps[rows])):
            continue
        if exponential is not None and _has_form(exponential, BodyForm.EXPONENTIAL):
            return found
    return None


def _body_names(op: Any) -> list[str]:
    *operations, _ = op.regions[0].blocks[0].operations
    return [nested.operation.name for nested in operations]


def _rounding(value: Any) -> Any | None:
    """Return what rounds a tensor of f32 to halves for one reader, None for others."""
    op = _generic(value)
    if op is None or len(op.inputs) != 1 or len(list(value.uses)) != 1:
        return None
    plain = all(map(_is_identity, _maps(op)))
    return op if plain and _body_names(op) == ["arith.truncf"] else None


def _rounded(rounding: Any, value: Any) -> Any:
    """Round something else."""
    made = rounding.operation.clone()
    made.operands[0] = value
    return made.results[0]


def _why_not_softmax(scaling: _Scaling) -> str:
    """Return why the rows of a product may not be scaled instead; "" if they may.

    With `e = exp(x - m)`, `S = sum(e)` and weights `e / S`, where `m` is the maximum
    of the same row that `S` sums up, every `e` is at most one and `S` is between one
    and the length of the row. So `sum(e * v) / S` holds no number that is more than
    that length times as large as those of `sum((e / S) * v)`, and none that is
    smaller. A reference above or below the maximum, a sum over other elements, or
    another factor than `S` or `1 / S` has no such bounds.
    """
    exponential = _generic(scaling.exponentials)
    difference = exponential and _generic(exponential.inputs[0])
    if difference is None or not _has_form(difference, BodyForm.DIFFERENCE):
        return "the exponents are no differences"
    element = ir.RankedTensorType(scaling.exponentials.type).element_type
    if not isinstance(element, ir.F32Type | ir.F64Type):
        return f"{element} overflows soon"
    values, reference = difference.inputs
    top = _reduction_behind(reference, BodyForm.MAXIMUM, values)
    if top is None or _maps(top)[-1] != _maps(difference)[1]:
        return "what is subtracted is not made of the maximum of the row"
    if not (_starts_at_lowest(top) and _is_maximum(reference, top.results[0])):
        return "what is subtracted may differ from the maximum"
    return _why_not_sum(scaling, top)


def _why_not_sum(scaling: _Scaling, top: Any) -> str:
    total = _reduction_behind(scaling.factors, BodyForm.SUM, scaling.exponentials)
    if total is None or not _maps(total)[-1] == scaling.index == _maps(top)[-1]:
        return "the factor is not made of the sum of the row"
    length = _size(scaling.exponentials) // max(1, _size(total.results[0]))
    if not _is_total(scaling, total.results[0], length):
        return "the factor may differ from the sum"
    return ""


def _has_form(op: linalg.GenericOp, form: BodyForm) -> bool:
    *_, result = _maps(op)
    same = _is_identity(result) and _is_identity(_maps(op)[0])
    return same and body_form(op.operation) is form


def _reduction_behind(value: Any, form: BodyForm, of: Any) -> Any | None:
    """Return the reduction of a tensor that a value is made of, element by element."""
    shape = ir.RankedTensorType(value.type).shape
    seen = [value]
    for current in seen:
        op = _generic(current)
        if op is None or op.results[0].type.shape != shape:
            continue
        if list(op.inputs) == [of] and body_form(op.operation) is form:
            return op if _is_identity(_maps(op)[0]) else None
        if len(seen) < MOST_STEPS and all(_is_identity(map_) for map_ in _maps(op)):
            seen += [v for v in op.inputs if v not in seen]
    return None


def _starts_at_lowest(maximum: Any) -> bool:
    start = filled_with(maximum.outputs[0])
    return start is not None and constant_number(start) == -math.inf


def _is_maximum(reference: Any, top: Any) -> bool:
    """Whether a reference is the maximum wherever that is a finite number.

    Where it is not, all of a row's weights are the same with and without deferring:
    zero or NaN.
    """
    steps = _RowFunction(reference, top)
    most = sys.float_info.max
    return all(steps(x) == x for x in steps.probes(-most, most))


def _is_total(scaling: _Scaling, total: Any, length: int) -> bool:
    """Whether a factor is the sum of a row, or its reciprocal where it multiplies."""
    steps = _RowFunction(scaling.factors, total)
    divides = _body_names(scaling.op) == ["arith.divf"]
    return all(
        steps(x) == (x if divides else 1.0 / x) for x in steps.probes(1.0, length)
    )


class _RowFunction:
    """A number of each row as a function of another, for some operations alone.

    They are copies, selections, comparisons, and a reciprocal: between the constants,
    their reciprocals and one it is the number, its reciprocal, or a constant.
    """

    def __init__(self, value: Any, argument: Any) -> None:
        self._value, self._argument = value, argument
        self._constants: set[float] = set()
        self(1.0)

    def __call__(self, number: float) -> float | None:
        """Return the value for a number; None where it takes another operation."""
        return self._tensor(self._value, {self._argument: number})

    def probes(self, low: float, high: float) -> list[float]:
        """Return numbers between two, with one for each way that they are taken."""
        near = {low, high, -1.0, 0.0, 1.0}
        for constant in self._constants:
            for bound in (constant, 1.0 / constant if constant else constant):
                near |= {math.nextafter(bound, -math.inf), bound}
                near |= {math.nextafter(bound, math.inf)}
        bounds = sorted(x for x in near if low <= x <= high)
        middles = [a / 2 + b / 2 for a, b in itertools.pairwise(bounds)]
        return [*bounds, *middles]

    def _tensor(self, value: Any, known: dict[Any, float | None]) -> float | None:
        if value not in known:
            op = _generic(value)
            plain = op is not None and all(_is_identity(map_) for map_ in _maps(op))
            known[value] = self._body(op, known) if plain else None
        return known[value]

    def _body(self, op: Any, known: dict[Any, float | None]) -> float | None:
        *operations, terminator = op.regions[0].blocks[0].operations
        arguments = list(op.regions[0].blocks[0].arguments)
        numbers: dict[Any, float | None] = {
            argument: self._tensor(value, known)
            for argument, value in zip(arguments, op.inputs, strict=False)
        }
        for nested in operations:
            taken = [self._scalar(v, numbers) for v in nested.operation.operands]
            result = nested.operation.results[0]
            numbers[result] = _applied(nested.operation, taken)
        return self._scalar(terminator.operands[0], numbers)

    def _scalar(self, value: Any, numbers: dict[Any, float | None]) -> float | None:
        if value in numbers:
            return numbers[value]
        constant = constant_number(value)
        if constant is not None:
            self._constants.add(float(constant))
        return constant


def _applied(op: Any, operands: list[float | None]) -> float | None:
    """Apply an operation to numbers; None where that is not one of those known."""
    if op.name == "arith.select":
        condition, yes, no = operands
        return None if condition is None else (yes if condition else no)
    if op.name == "arith.extf":
        return operands[0]
    a, b = operands if len(operands) == 2 else (None, None)
    if a is None or b is None:
        return None
    if op.name == "arith.divf":
        # Any other quotient is no step that is known.
        return 1.0 / b if a == 1.0 and b else None
    known = _CHOICES.get(op.name)
    if op.name in _PREDICATES:
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        known = _PREDICATES[op.name].get(predicate)
    return None if known is None else float(known(a, b))


def _index_in_result(op: linalg.GenericOp, number: int, index: Any) -> Any | None:
    """The index of the factors over the dims of a product; None if they vary in it."""
    maps = _maps(op)
    if not all(isinstance(e, ir.AffineDimExpr) for m in maps for e in m.results):
        return None
    place = {expr.position: dim for dim, expr in enumerate(maps[-1].results)}
    loops = [expr.position for expr in maps[number].results]
    found = []
    for expr in index.results:
        dim = isinstance(expr, ir.AffineDimExpr) and place.get(loops[expr.position])
        if dim is None or dim is False:
            return None
        found.append(ir.AffineDimExpr.get(dim))
    return ir.AffineMap.get(len(maps[-1].results), 0, found)


def _rescale(product: Any, scaling: _Scaling, index: Any) -> Any:
    type_ = ir.RankedTensorType(product.type)
    rank = len(type_.shape)
    empty = tensor.EmptyOp(list(type_.shape), type_.element_type).result
    scaled = scaling.op.operation.clone()
    rows = list(scaling.op.inputs).index(scaling.exponentials)
    operands = [scaling.factors] * 2
    operands[rows] = product
    maps = [index] * 2
    maps[rows] = ir.AffineMap.get_identity(rank)
    for position, value in enumerate([*operands, empty]):
        scaled.operands[position] = value
    maps.append(ir.AffineMap.get_identity(rank))
    scaled.attributes["indexing_maps"] = map_array(maps)
    scaled.attributes["iterator_types"] = iterator_array(rank)
    scaled.results[0].set_type(type_)
    return scaled


@dataclass(frozen=True)
class DeferNormalization(FunctionPass):
    """Divide by the sums of a softmax after the product that reads it, not before.

    ```mlir
    %w = linalg.generic {mulf} ins(%exp, %r : tensor<8x64xf32>, tensor<8xf32>) ...
    %o = linalg.generic {product over the 64} ins(%w, %v : ...) -> tensor<8x16xf32>
    ```
    becomes
    ```mlir
    %p = linalg.generic {product over the 64} ins(%exp, %v : ...) -> tensor<8x16xf32>
    %o = linalg.generic {mulf} ins(%p, %r : tensor<8x16xf32>, tensor<8xf32>) ...
    ```
    The product then needs its rows no longer whole, so that they can be streamed.
    `%exp` has to be exponentials of differences to the maximum of their row, and `%r`
    their sum over that row, by which is divided, or its reciprocal: all exponentials
    are at most one then, one of them is one, and no number becomes larger than it was
    by more than the length of the row. With `rounded`, weights that are rounded to
    halves for the product alone are left undivided until behind it: exponentials are
    rounded then, by as much of each as the weights were. Something else may stand for
    a maximum that is infinite, or for a sum that is zero. Left alone: products with a
    name, which a library may compute, those larger than the operand, weights that
    others read too,
    and narrow floats. Where exponentials are scaled by something else, the function
    keeps the reason in `magweld.remarks`.
    """

    name: ClassVar[str] = "defer-normalization"

    rounded: Annotated[bool, "whether roundings to halves may come first"] = False

    def run_on_function(self, function: func.FuncOp) -> None:
        """Rewrite the products, then say why some of them were not."""
        pattern = partial(defer, rounded=self.rounded)
        apply_patterns(function.operation, ((linalg.GenericOp, pattern),))
        for op in operations_of(function, linalg.GenericOp):
            for reason in _refusals(op):
                add_remark(function, f"normalization stays before a product: {reason}")
