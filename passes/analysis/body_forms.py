"""Owns the forms of bodies that streaming knows the algebra of."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir
from magweld.passes.ir.constants import constant_number, filled_with
from magweld.passes.tiling.regions import BodyForm

_HALVES = ("f16", "bf16")
_CASTS = frozenset({"arith.extf", "arith.truncf"})


def body_form(root: Any) -> BodyForm:
    """Return what the body of a linalg operation computes; OTHER if in doubt.

    Accumulating forms ask for an accumulator that starts at what changes nothing.
    """
    if not root.name.startswith("linalg.") or len(root.results) != 1:
        return BodyForm.OTHER
    block = root.regions[0].blocks[0]
    *operations, terminator = (op.operation for op in block.operations)
    *inputs, output = block.arguments
    if not operations or list(terminator.operands) != [operations[-1].results[0]]:
        return BodyForm.OTHER
    names = tuple(op.name for op in operations)
    operands = [list(op.operands) for op in operations]
    if names == ("arith.mulf", "arith.addf") and len(inputs) == 2:
        made = operations[0].results[0]
        sums = set(operands[0]) == set(inputs) and set(operands[1]) == {made, output}
        return _summed(root, sums)
    if _is_product(names) and factor_type(root) in _HALVES and starts_at_zero(root):
        return BodyForm.WIDENED_SUM
    if names == ("arith.addf",) and len(inputs) == 1:
        return _summed(root, set(operands[0]) == {inputs[0], output})
    if names == ("arith.maximumf",) and set(operands[0]) == {*inputs, output}:
        return BodyForm.MAXIMUM
    if names == ("arith.subf",) and operands[0] == inputs:
        return BodyForm.DIFFERENCE
    if names == ("math.exp",) and operands[0] == inputs:
        return BodyForm.EXPONENTIAL
    if len(names) == 1 and names[0] in _CASTS and operands[0] == inputs:
        return BodyForm.CAST
    return BodyForm.OTHER


def _summed(root: Any, is_sum: bool) -> BodyForm:
    return BodyForm.SUM if is_sum and starts_at_zero(root) else BodyForm.OTHER


def _is_product(names: tuple[str, ...]) -> bool:
    kept = [name for name in names if name != "arith.extf"]
    return kept == ["arith.mulf", "arith.addf"] and len(kept) < len(names)


def factor_type(root: Any) -> str:
    """Return the type of the factors of a product whose body sums up in f32.

    It is `sum + left * right`, of factors as they are. "" for any other body, of two
    types among them: a product that is rounded before it is added is another one.
    """
    types = {str(v.type.element_type) for v in list(root.operands)[:2]}
    operations = [op.operation for op in root.regions[0].blocks[0].operations]
    kept = [op for op in operations if op.name != "arith.extf"]
    names = [op.name for op in kept]
    is_product = len(root.operands) == 3 and len(types) == 1
    if not is_product or names != ["arith.mulf", "arith.addf", "linalg.yield"]:
        return ""
    in_f32 = all(isinstance(op.results[0].type, ir.F32Type) for op in kept[:2])
    return types.pop() if in_f32 else ""


def starts_at_zero(root: Any) -> bool:
    """Return whether the accumulator of a linalg operation is filled with zeros."""
    start = filled_with(root.operands[len(root.operands) - 1])
    return start is not None and constant_number(start) == 0
