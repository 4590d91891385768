"""Owns exponential functions whose powers of two an instruction multiplies by.

An instruction of AVX-512 multiplies each lane by a power of two that may be no normal
number: it stands for eight of integer and float arithmetic. The error of exp is at most
1.5 units in the last place, that of exp2 1.
"""

from __future__ import annotations

from magweld.bindings import arith, ir, llvm
from magweld.passes.cpu import polynomials
from magweld.passes.cpu.emit_lookup import LANES, by_registers
from magweld.passes.cpu.emit_math import (
    EXP2_HIGH,
    EXP2_LOW,
    EXP_HIGH,
    EXP_LOW,
    Lanes,
)
from magweld.passes.cpu.emit_vectors import lanes_of

_SCALE = "llvm.x86.avx512.mask.scalef.ps."
_FEWEST = 4
_BITS = 32
_AS_THE_THREAD_ROUNDS = 4


def emit_exp(x: ir.Value) -> ir.Value:
    """e^x."""
    return by_registers(x, _exp, _FEWEST)


def emit_exp2(x: ir.Value) -> ir.Value:
    """2^x."""
    return by_registers(x, _exp2, _FEWEST)


def _exp(x: ir.Value) -> ir.Value:
    of = Lanes(x)
    count, _, p = of.parts_of_exp(of.at_least(of.at_most(x, EXP_HIGH), EXP_LOW))
    return _scaled(of, of.add(p, of.real(1.0)), count)


def _exp2(x: ir.Value) -> ir.Value:
    of = Lanes(x)
    x = of.at_least(of.at_most(x, EXP2_HIGH), EXP2_LOW)
    count, _ = of.nearest(x, 1.0)
    r = of.sub(x, count)
    p = of.fma(of.polynomial(r, polynomials.exp2_tail()), r, of.real(1.0))
    return _scaled(of, p, count)


def _scaled(of: Lanes, value: ir.Value, count: ir.Value) -> ir.Value:
    """Return value * 2^n for an integer n as a float."""
    lanes = lanes_of(value)
    operands = [value, count, value, _number(max(8, lanes), -1)]
    if lanes == LANES:
        operands.append(_number(_BITS, _AS_THE_THREAD_ROUNDS))
    name = f"{_SCALE}{lanes * _BITS}"
    call = llvm.CallIntrinsicOp(of.float, name, operands, [], [])
    made: ir.Value = call.results_
    return made


def _number(bits: int, value: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(bits)
    return arith.ConstantOp(kind, ir.IntegerAttr.get(kind, value)).result
