"""Owns the clean-up of generic operations that come from another dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, ir, linalg, math
from magweld.passes.graph.generic_reads import loops_known
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import ValueMap, clone_mapped, defining_op
from magweld.passes.ir.linalg_builder import map_array

# Formats whose numbers are all numbers of Python, and those that are rounded to.
_EXACT = ir.F64Type | ir.F32Type
_ROUNDED = ir.F32Type | ir.F16Type | ir.BF16Type
# The least number of a format that has all its bits; one over it is in range, too.
_LEAST_NORMAL = {ir.F32Type: 2.0**-126, ir.F64Type: 2.0**-1022}


@dataclass(frozen=True)
class _Plan:
    """What remains of a generic operation.

    Attributes:
        inputs: Numbers of the inputs that stay operands.
        constants: Input number and the element it is equal to everywhere.
        outputs: Numbers of the outputs whose result is read.
    """

    inputs: tuple[int, ...]
    constants: dict[int, Any]
    outputs: tuple[int, ...]


def shrink(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Drop results that nobody reads and operands that are one constant."""
    if not op.results:
        return False  # on buffers an output is an effect
    constants = _constant_inputs(op)
    plan = _Plan(
        tuple(n for n in range(len(op.inputs)) if n not in constants),
        constants,
        _live_outputs(op),
    )
    if not constants and len(plan.outputs) == len(op.outputs):
        return False
    if not loops_known(_kept_maps(op, plan)):
        return False
    rebuilt = _rebuild(op, plan)
    # What nobody reads may be replaced by anything of its type.
    results = list(op.outputs)
    for number, result in zip(plan.outputs, rebuilt.results, strict=True):
        results[number] = result
    rewriter.replace_op(op.operation, results)
    return True


def round_constant(op: arith.TruncFOp, rewriter: Any) -> bool:
    """Replace the rounding of a constant by the rounded constant."""
    source = defining_op(op.in_)
    if not isinstance(source, arith.ConstantOp):
        return False
    known = isinstance(source.value, ir.FloatAttr) and isinstance(op.in_.type, _EXACT)
    if (
        not known
        or not isinstance(op.out.type, _ROUNDED)
        or "roundingmode" in op.attributes
    ):
        return False
    # A float attribute rounds to nearest, ties to even, as the operation does.
    rounded = ir.FloatAttr.get(op.out.type, ir.FloatAttr(source.value).value)
    rewriter.replace_op(op.operation, arith.ConstantOp(op.out.type, rounded).operation)
    return True


def multiply_in_erf(op: math.ErfOp, rewriter: Any) -> bool:
    """Scale the argument of an error function by a product, not by a quotient."""
    quotient = defining_op(op.operand)
    if not isinstance(quotient, arith.DivFOp):
        return False
    divisor = defining_op(quotient.rhs)
    if not isinstance(divisor, arith.ConstantOp):
        return False
    factor = _reciprocal(divisor.value)
    if factor is None:
        return False
    # The rounding of the argument is all that changes, and the relative error of the
    # function is at most that of its argument.
    scaled = arith.mulf(quotient.lhs, arith.ConstantOp(factor.type, factor).result)
    rewriter.replace_op(op.operation, [math.erf(scaled)])
    return True


def _reciprocal(number: Any) -> Any | None:
    """Return one over a number, None unless both are normal and no more is lost.

    The reciprocal of zero, an infinity, NaN or a number near the ends of the range is
    none: a product with it overflows, or loses bits, where the quotient does not.
    """
    if not isinstance(number, ir.FloatAttr):
        return None
    least = _LEAST_NORMAL.get(type(number.type))
    if least is None or not least <= abs(number.value) <= 1.0 / least:
        return None
    return ir.FloatAttr.get(number.type, 1.0 / number.value)


def _constant_inputs(op: linalg.GenericOp) -> dict[int, Any]:
    found = {}
    for number, value in enumerate(op.inputs):
        source = defining_op(value)
        if isinstance(source, arith.ConstantOp):
            elements = source.value
            if isinstance(elements, ir.DenseElementsAttr) and elements.is_splat:
                found[number] = elements.get_splat_value()
    return found


def _live_outputs(op: linalg.GenericOp) -> tuple[int, ...]:
    """Return the outputs whose results are read, or whose elements those depend on."""
    block = op.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1]
    arguments = list(block.arguments)[len(op.inputs) :]
    live = {n for n, result in enumerate(op.results) if any(True for _ in result.uses)}
    while True:
        needed = _sources([terminator.operands[n] for n in live])
        more = {n for n, argument in enumerate(arguments) if argument in needed}
        if more <= live:
            # With nothing read the operation is dead and is removed as such.
            return tuple(sorted(live)) or tuple(range(len(op.outputs)))
        live |= more


def _sources(values: Sequence[Any]) -> set[Any]:
    found: set[Any] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        producer = defining_op(value)
        if producer is not None:
            pending += list(producer.operation.operands)
    return found


def _kept_maps(op: linalg.GenericOp, plan: _Plan) -> list[Any]:
    maps = [ir.AffineMapAttr(attribute).value for attribute in op.indexing_maps]
    outputs = [maps[len(op.inputs) + number] for number in plan.outputs]
    return [*(maps[number] for number in plan.inputs), *outputs]


def _rebuild(op: linalg.GenericOp, plan: _Plan) -> linalg.GenericOp:
    outputs = [op.outputs[number] for number in plan.outputs]
    inputs = [op.inputs[number] for number in plan.inputs]
    rebuilt = linalg.GenericOp(
        [value.type for value in outputs],
        inputs,
        outputs,
        map_array(_kept_maps(op, plan)),
        op.iterator_types,
    )
    old = op.regions[0].blocks[0]
    arguments = list(old.arguments)
    kept = [
        *(arguments[number] for number in plan.inputs),
        *(arguments[len(op.inputs) + number] for number in plan.outputs),
    ]
    types = [argument.type for argument in kept]
    location = ir.Location.current
    block = rebuilt.regions[0].blocks.append(*types, arg_locs=[location] * len(types))
    values = ValueMap()
    for before, after in zip(kept, block.arguments, strict=True):
        values[before] = after
    with ir.InsertionPoint(block):
        for number, element in plan.constants.items():
            constant = arith.ConstantOp(arguments[number].type, element)
            values[arguments[number]] = constant.result
        _clone_body(old, values, plan.outputs)
    return rebuilt


def _clone_body(block: ir.Block, values: ValueMap, outputs: Sequence[int]) -> None:
    *body, terminator = block.operations
    yielded = [terminator.operands[number] for number in outputs]
    needed = _sources(yielded)
    for op in body:
        if any(result in needed for result in op.operation.results):
            clone_mapped(op, values)
    linalg.YieldOp([values[value] for value in yielded])


@dataclass(frozen=True)
class SimplifyGeneric(PatternPass):
    """Make generic operations compute only what is read, from what varies.

    An output whose result nobody reads goes, such as the positions that come with a
    maximum; an input that has one constant everywhere becomes that constant in the
    body; a constant that the body rounds to a narrower type becomes the rounded one;
    an error function of a quotient by a constant takes a product, if the constant and
    its reciprocal are normal numbers.

    ```mlir
    %m:2 = linalg.generic {...} ins(%x, %splat : ...) outs(%max, %position : ...) {
    ^bb0(%in: f32, %c: f32, %max: f32, %position: i64): ...
    ```
    with `%m#1` unread becomes

    ```mlir
    %m = linalg.generic {...} ins(%x : ...) outs(%max : ...) {
    ^bb0(%in: f32, %max: f32): ...
    ```
    Operands from which alone a loop has its extent stay.
    """

    name: ClassVar[str] = "simplify-generic"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the pattern for generic operations and those for their bodies."""
        return (
            (linalg.GenericOp, shrink),
            (arith.TruncFOp, round_constant),
            (math.ErfOp, multiply_in_erf),
        )
