"""Owns expand-bfloat: bf16 is rounded to, and widened, by integer arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import arith, func, ir, llvm, vector
from magweld.passes.cpu.bfloat_values import (
    exact_values,
    is_bfloat,
    is_single,
    long_payloads,
    operations_on_singles,
)
from magweld.passes.cpu.emit_vectors import splat
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.cpu.vector_unit_pass import VectorUnitPass
from magweld.passes.ir.utils import operations_of

_HALF_BITS = 16
_LAST_KEPT = 1 << _HALF_BITS
_HIGH_HALF = 0xFFFF0000 - (1 << 32)
_LESS_THAN_HALF = 0x7FFF
_NAN = 0x7FC00000
# Adds the products of neighbours among 32 integers of 16 bits. With the sum behind it
# that is one instruction of AVX512-VNNI, which CPUs with AVX512-BF16 have.
_ADD_NEIGHBOURS = "llvm.x86.avx512.pmaddw.d.512"
_WIDEST = 512


@dataclass(frozen=True)
class ExpandBfloat(VectorUnitPass):
    """Round f32 to bf16, and widen bf16, by arithmetic on their bits.

        %r = arith.truncf %x : f32 to bf16
        %w = arith.extf %r : bf16 to f32

    becomes, to nearest and ties to even,

        %odd = (bits(%x) >> 16) & 1
        %w = (bits(%x) + 0x7fff + %odd) & 0xffff0000

    A number that is used as f32 again stays in its lane so. Vectors as wide as the
    registers of AVX-512 have `0x7fff + %odd` as the two halves of one integer, which
    one instruction adds. NaN would be lost if the sum ran over; it is looked for where
    a number comes from f32 or f16 of others. What bf16 holds, such as a maximum of
    numbers that were widened, is not rounded again.

    Attributes:
        vector_bits: Width of a vector register.
        vector_registers: Number of vector registers.
        bf16_pairs: Whether one instruction multiplies pairs of bf16. Such CPUs also add
            products of words in one.
    """

    name: ClassVar[str] = "expand-bfloat"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the conversions of all kernels of the module."""
        for function in kernels_of(module):
            roundings = list(filter(_rounds, operations_of(function, arith.TruncFOp)))
            if roundings:
                self._expand(function, roundings)
            for op in operations_of(function, arith.ExtFOp):
                if _widens(op):
                    _replace(op, _widened(op))

    def _expand(
        self, function: func.FuncOp, roundings: Sequence[arith.TruncFOp]
    ) -> None:
        operations = operations_on_singles(function)
        exact = exact_values(operations)
        unknown = long_payloads(function, operations)
        known = [(op.in_ in exact, op.in_ not in unknown) for op in roundings]
        for op, (same, short) in zip(roundings, known, strict=True):
            with ir.InsertionPoint(op), op.location:
                bits = _Bits(op.in_.type)
                value = bits.of(op.in_)
                if not same:
                    wide = self.unit.pairs and bits.fill(_WIDEST)
                    value = bits.rounded(value, by_neighbours=wide)
                    value = value if short else bits.with_nan(value, op.in_)
                _use(op, bits, value, same=same)


def _rounds(op: arith.TruncFOp) -> bool:
    nearest = "roundingmode" not in op.operation.attributes
    return is_single(op.in_) and is_bfloat(op.out) and nearest


def _widens(op: arith.ExtFOp) -> bool:
    return is_bfloat(op.in_) and is_single(op.out)


def _use(op: arith.TruncFOp, bits: _Bits, value: ir.Value, *, same: bool) -> None:
    """Give the users of a rounding the high half of some bits, where it is wanted."""
    widenings = [use.owner for use in op.out.uses]
    widenings = [w for w in widenings if isinstance(w, arith.ExtFOp) and _widens(w)]
    if widenings:
        wide = op.in_ if same else bits.cleared(value)
        for widening in widenings:
            _replace(widening, wide)
    if any(True for _ in op.out.uses):
        op.out.replace_all_uses_with(bits.narrowed(value, op.out.type))
    op.operation.erase()


def _widened(op: arith.ExtFOp) -> ir.Value:
    with ir.InsertionPoint(op), op.location:
        bits = _Bits(op.out.type)
        short = arith.BitcastOp(bits.short, op.in_).result
        wide = arith.ExtUIOp(bits.kind, short).result
        return bits.as_number(arith.ShLIOp(wide, bits.number(_HALF_BITS)).result)


def _replace(op: arith.ExtFOp, value: ir.Value) -> None:
    op.out.replace_all_uses_with(value)
    op.operation.erase()


class _Bits:
    """Arithmetic on the bits of f32, or of a vector of it.

    Args:
        real: The type of the numbers.
    """

    def __init__(self, real: ir.Type) -> None:
        self._real = real
        self.kind = _of_integers(real, 2 * _HALF_BITS)
        self.short = _of_integers(real, _HALF_BITS)

    def fill(self, bits: int) -> bool:
        """Tell whether the numbers fill a register of a width."""
        vectors = isinstance(self._real, ir.VectorType)
        return vectors and list(self._real.shape) == [bits // (2 * _HALF_BITS)]

    def number(self, value: int) -> ir.Value:
        """Return a constant."""
        return splat(self.kind, ir.IntegerAttr.get(_integer(2 * _HALF_BITS), value))

    def of(self, value: ir.Value) -> ir.Value:
        """Return the bits of numbers."""
        return arith.BitcastOp(self.kind, value).result

    def as_number(self, bits: ir.Value) -> ir.Value:
        """Return the numbers that have some bits."""
        return arith.BitcastOp(self._real, bits).result

    def rounded(self, bits: ir.Value, *, by_neighbours: bool) -> ir.Value:
        """Return bits whose high half is that of the nearest number of bf16."""
        if by_neighbours:
            return arith.AddIOp(bits, self._sum_of_halves(bits)).result
        high = arith.ShRUIOp(bits, self.number(_HALF_BITS)).result
        odd = arith.AndIOp(high, self.number(1)).result
        more = arith.AddIOp(odd, self.number(_LESS_THAN_HALF)).result
        return arith.AddIOp(bits, more).result

    def _sum_of_halves(self, bits: ir.Value) -> ir.Value:
        odd = arith.AndIOp(bits, self.number(_LAST_KEPT)).result
        both = arith.OrIOp(odd, self.number(_LESS_THAN_HALF)).result
        lanes = _WIDEST // _HALF_BITS
        kind = ir.VectorType.get([lanes], _integer(_HALF_BITS))
        halves = vector.BitCastOp(kind, both).result
        ones = splat(kind, ir.IntegerAttr.get(_integer(_HALF_BITS), 1))
        call = llvm.CallIntrinsicOp(self.kind, _ADD_NEIGHBOURS, [halves, ones], [], [])
        made: ir.Value = call.results_
        return made

    def with_nan(self, bits: ir.Value, value: ir.Value) -> ir.Value:
        """Return bits that are those of a NaN where a value is one."""
        unordered = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
        return arith.SelectOp(unordered, self.number(_NAN), bits).result

    def cleared(self, bits: ir.Value) -> ir.Value:
        """Return the numbers whose bits are the high half of others."""
        return self.as_number(arith.AndIOp(bits, self.number(_HIGH_HALF)).result)

    def narrowed(self, bits: ir.Value, kind: ir.Type) -> ir.Value:
        """Return the high half of bits as a number of bf16."""
        high = arith.ShRUIOp(bits, self.number(_HALF_BITS)).result
        short = arith.TruncIOp(self.short, high).result
        return arith.BitcastOp(kind, short).result


def _of_integers(like: ir.Type, width: int) -> ir.Type:
    """Return the type of integers that has the lanes of another type."""
    if isinstance(like, ir.VectorType):
        return ir.VectorType.get(like.shape, _integer(width))
    return _integer(width)


def _integer(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)
