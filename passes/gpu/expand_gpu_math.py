"""Owns expand-gpu-math: math functions become hardware instructions and arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import gpu, ir, llvm, math
from magweld.diagnostics import UnsupportedError
from magweld.passes.cpu.emit_math import (
    EXP_HIGH,
    EXP_LOW,
    EXPANSIONS,
    LOG2_E,
    Lanes,
)
from magweld.passes.cpu.emit_power import emit_pow, expand_constant_power
from magweld.passes.cpu.emit_trigonometry import TRIGONOMETRY
from magweld.passes.gpu.half_functions import emit_half_erf, is_rounded_to_halves
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import node_of, operations_of

# log2(e) rounded to f32, and what that lost: two fmas then give the fraction of
# x * log2(e) with an error of half a unit in the last place of 1/2.
_LOG2_E_HIGH = float.fromhex("0x1.715476p+0")
_LOG2_E_LOW = LOG2_E - _LOG2_E_HIGH

# What both targets select instructions for, by the width of the type.
_INTRINSICS = {
    "arith.maxnumf": ("llvm.maxnum", (32, 64)),
    "arith.minnumf": ("llvm.minnum", (32, 64)),
    "math.absf": ("llvm.fabs", (32, 64)),
    "math.ceil": ("llvm.ceil", (32, 64)),
    "math.copysign": ("llvm.copysign", (32, 64)),
    "math.exp2": ("llvm.exp2", (32,)),
    "math.floor": ("llvm.floor", (32, 64)),
    "math.fma": ("llvm.fma", (32, 64)),
    "math.roundeven": ("llvm.roundeven", (32, 64)),
    "math.sqrt": ("llvm.sqrt", (32, 64)),
    "math.trunc": ("llvm.trunc", (32, 64)),
}


@dataclass(frozen=True)
class ExpandGpuMath(Pass):
    """Replace math functions in GPU modules by what needs no device library.

    Square roots, rounding, fma and the like become intrinsics of LLVM that both
    targets select one or a few instructions for. `math.exp2` becomes the hardware's
    (2 units in the last place by NVIDIA's tables), `math.exp` that with an exact
    argument reduction. The other functions of f32 become arithmetic
    (`passes/cpu/emit_math.py`, `emit_trigonometry.py` and `emit_power.py` state the
    errors), sines, cosines and powers in double precision, and an erf of which only
    halves are kept a shorter one with an error of 2^-15. Any other function or type
    is refused: the call to a library that it would become cannot be linked.
    """

    name: ClassVar[str] = "expand-gpu-math"

    def run(self, module: Any) -> None:
        """Expand the functions of all GPU modules."""
        for device_module in operations_of(module, gpu.GPUModuleOp):
            for op in operations_of(device_module, math.PowFOp):
                expand_constant_power(op)
            for op in _math_operations(device_module):
                _replace(op, _expansion_of(op))
            for op in _math_operations(device_module):
                _replace(op, _intrinsic_of(op))


def emit_exp(x: ir.Value) -> ir.Value:
    """e^x as 2^n * exp2(r) with |r| <= 1/2, so that the hardware's error is all."""
    of = Lanes(x)
    clamped = of.at_least(of.at_most(x, EXP_HIGH), EXP_LOW)
    count, number = of.nearest(clamped, LOG2_E)
    negative = of.sub(of.real(-0.0), count)
    r = of.fma(clamped, of.real(_LOG2_E_HIGH), negative)
    r = of.fma(clamped, of.real(_LOG2_E_LOW), r)
    return of.scale(_call("llvm.exp2", [r]), number)


_EXPANSIONS: dict[str, Callable[..., ir.Value]] = {
    **EXPANSIONS,
    **TRIGONOMETRY,
    "math.exp": emit_exp,
    "math.powf": emit_pow,
}


def _math_operations(root: Any) -> list[Any]:
    found = operations_of(root, ir.OpView)
    names = [op.operation.name for op in found]
    return [
        op
        for op, name in zip(found, names, strict=True)
        if name.startswith("math.") or name in _INTRINSICS
    ]


def _replace(op: Any, made: Callable[[], ir.Value] | None) -> None:
    if made is None:
        return
    with ir.InsertionPoint(op), op.location:
        op.results[0].replace_all_uses_with(made())
    op.operation.erase()


def _expansion_of(op: Any) -> Callable[[], ir.Value] | None:
    name = op.operation.name
    operands = list(op.operands)
    if name in _INTRINSICS or not isinstance(operands[0].type, ir.F32Type):
        return None
    emit = _EXPANSIONS.get(name)
    if name == "math.erf" and is_rounded_to_halves(op.results[0]):
        emit = emit_half_erf
    return None if emit is None else lambda: emit(*operands)


def _intrinsic_of(op: Any) -> Callable[[], ir.Value]:
    name = op.operation.name
    operands = list(op.operands)
    intrinsic, widths = _INTRINSICS.get(name, ("", ()))
    type_ = operands[0].type
    if isinstance(type_, ir.FloatType) and type_.width in widths:
        return lambda: _call(intrinsic, operands)
    raise UnsupportedError(
        "gpu-math-function",
        f"'{name}' of {type_} has no expansion for GPUs",
        where=str(op.location),
        nodes=[node_of(op.location)],
        hint="compute it in f32, or let a library compute the operator",
    )


def _call(intrinsic: str, operands: list[ir.Value]) -> ir.Value:
    type_ = operands[0].type
    call = llvm.CallIntrinsicOp(type_, f"{intrinsic}.{type_}", operands, [], [])
    made: ir.Value = call.results_
    return made
