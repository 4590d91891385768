"""Owns expand-math: math functions become calls to arithmetic made for the lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import arith, func, ir, math, vector
from magweld.passes.base import Pass
from magweld.passes.cpu.emit_double_math import DOUBLE_EXPANSIONS
from magweld.passes.cpu.emit_math import EXPANSIONS
from magweld.passes.cpu.emit_trigonometry import TRIGONOMETRY
from magweld.passes.cpu.emit_vectors import element_type, lanes_of
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.ir_utils import operations_of

Emit = Callable[[ir.Value], ir.Value]
_EMITTERS: dict[str, dict[str, Emit]] = {
    "f32": EXPANSIONS | TRIGONOMETRY,
    "f64": DOUBLE_EXPANSIONS,
}


@dataclass(frozen=True)
class ExpandMath(Pass):
    """Replace math functions and those of vectors by straight arithmetic.

        math.exp %v : vector<16xf32>   =>   call @exp_16xf32(%v)

    The private functions are made once for each number of lanes and are inlined by
    LLVM. exp, exp2, expm1, log, log2, log1p, erf, tanh, rsqrt, sin, cos and small
    constant powers of f32 have an expansion (`passes/cpu/emit_math.py` and
    `emit_trigonometry.py` state the errors), and expm1 and log1p of f64, which would
    lose accuracy near zero (`emit_double_math.py`). The other functions stay: they
    become calls into the C library, lane by lane.
    """

    name: ClassVar[str] = "expand-math"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the operations of all kernels of the module."""
        made: dict[str, func.FuncOp] = {}
        for function in kernels_of(module):
            for op in operations_of(function, math.PowFOp):
                _expand_power(op)
            for op in operations_of(function, ir.OpView):
                if op.operation.name.startswith("math."):
                    _expand(op.operation, module, made)


def _expand(
    op: ir.Operation, module: ir.Operation, made: dict[str, func.FuncOp]
) -> None:
    x, *others = op.operands
    kind = str(element_type(x.type))
    emit = _EMITTERS.get(kind, {}).get(op.name)
    if emit is None or others:
        return
    name = f"{op.name.removeprefix('math.')}_{lanes_of(x)}x{kind}"
    if name not in made:
        made[name] = _make(name, op, module, emit)
    with ir.InsertionPoint(op), op.location:
        call = func.CallOp(made[name], [x])
    op.results[0].replace_all_uses_with(call.results[0])
    op.erase()


def _make(name: str, op: ir.Operation, module: ir.Operation, emit: Emit) -> func.FuncOp:
    kind = op.operands[0].type
    with ir.InsertionPoint(module.regions[0].blocks[0]), ir.Location.unknown():
        function = func.FuncOp(name, ([kind], [kind]), visibility="private")
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            func.ReturnOp([emit(block.arguments[0])])
    function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    function.attributes["passthrough"] = ir.ArrayAttr.get(
        [ir.StringAttr.get("alwaysinline")]
    )
    return function


def _expand_power(op: math.PowFOp) -> None:
    base, power = op.operation.operands
    expansion = _POWERS.get(_constant(power))
    if expansion is None:
        return
    with ir.InsertionPoint(op), op.location:
        op.result.replace_all_uses_with(expansion(base))
    op.operation.erase()


def _constant(value: ir.Value) -> float | None:
    """Return the number that a scalar or all lanes of a vector are known to be."""
    if isinstance(value, ir.BlockArgument):
        return None
    owner = value.owner.opview
    if isinstance(owner, vector.BroadcastOp):
        return _constant(owner.operation.operands[0])
    if not isinstance(owner, arith.ConstantOp):
        return None
    number = owner.value
    if isinstance(number, ir.DenseElementsAttr):
        number = number.get_splat_value() if number.is_splat else None
    return number.value if isinstance(number, ir.FloatAttr) else None


def _multiply(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.MulFOp(a, b).result


def _square(base: ir.Value) -> ir.Value:
    return _multiply(base, base)


# What torch computes for these exponents; others are left to pow.
_POWERS: dict[float | None, Callable[[ir.Value], ir.Value]] = {
    0.5: lambda base: math.SqrtOp(base).result,
    1.0: lambda base: base,
    2.0: _square,
    3.0: lambda base: _multiply(_square(base), base),
    4.0: lambda base: _square(_square(base)),
}
