"""Owns the pass that divides by the sums of a softmax after the product, not before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.analysis.body_forms import body_form, starts_at_zero
from magweld.passes.analysis.cloning import defining_op
from magweld.passes.analysis.regions import BodyForm
from magweld.passes.base import Pattern, PatternPass
from magweld.passes.linalg_builder import iterator_array, map_array

# Operations between the sums of a softmax and what its rows are scaled by.
MOST_STEPS = 8


@dataclass(frozen=True)
class _Scaling:
    """Exponentials times, or divided by, something for every row of them."""

    op: Any
    exponentials: Any
    factors: Any
    index: Any  # of the factors, over the dims of the exponentials


def defer(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Scale the rows of a product instead of those of its operand."""
    if body_form(op.operation) is not BodyForm.SUM or len(op.inputs) != 2:
        return False
    for number, value in enumerate(op.inputs):
        scaling = _scaling(value)
        if scaling is None:
            continue
        index = _index_in_result(op, number, scaling.index)
        if index is None or _size(op.results[0]) > _size(value):
            continue
        product = op.operation.clone()
        product.operands[number] = scaling.exponentials
        scaled = _rescale(product.results[0], scaling, index)
        rewriter.replace_op(op.operation, scaled)
        return True
    return False


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
    names = [nested.operation.name for nested in operations]
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
        if not (_is_identity(result) and _is_identity(maps[rows])):
            continue
        if _is_of_softmax(found):
            return found
    return None


def _is_of_softmax(scaling: _Scaling) -> bool:
    """Whether no exponential is above one and the factors come from their sums.

    Only then are the products of exponentials as far from overflow as those of what
    is normalised.
    """
    exponential = _generic(scaling.exponentials)
    if exponential is None or not _has_form(exponential, BodyForm.EXPONENTIAL):
        return False
    difference = _generic(exponential.inputs[0])
    if difference is None or not _has_form(difference, BodyForm.DIFFERENCE):
        return False
    top = _made_by(difference.inputs[1], BodyForm.MAXIMUM, difference.inputs[0])
    total = _made_by(scaling.factors, BodyForm.SUM, scaling.exponentials)
    return top and total


def _has_form(op: linalg.GenericOp, form: BodyForm) -> bool:
    *_, result = _maps(op)
    same = _is_identity(result) and _is_identity(_maps(op)[0])
    return same and body_form(op.operation) is form


def _made_by(value: Any, form: BodyForm, of: Any) -> bool:
    """Whether a value is made, element by element, of a reduction of a tensor."""
    shape = ir.RankedTensorType(value.type).shape
    seen = [value]
    for current in seen:
        op = _generic(current)
        if op is None or op.results[0].type.shape != shape:
            continue
        if list(op.inputs) == [of]:
            sums = form is not BodyForm.SUM or starts_at_zero(op.operation)
            return sums and body_form(op.operation) is form
        if len(seen) < MOST_STEPS and all(_is_identity(map_) for map_ in _maps(op)):
            seen += [v for v in op.inputs if v not in seen]
    return False


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
class DeferNormalization(PatternPass):
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
    to be made of their sum: what is multiplied stays below one. Left alone: products
    with a name, which a library may compute, those larger than the operand, and
    weights that others read too.
    """

    name: ClassVar[str] = "defer-normalization"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the only pattern."""
        return ((linalg.GenericOp, defer),)
