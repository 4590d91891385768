"""Owns the emission of products of pairs of bf16: their panels and multiply-adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from magweld.bindings import arith, ir, llvm, vector
from magweld.passes.cpu.emit_body import Body, IndexOf, emit_copied
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_index import Index
from magweld.passes.cpu.emit_vectors import (
    broadcast,
    from_lanes,
    lane,
    lanes_of,
    shuffle,
    splat,
    with_lanes,
)
from magweld.passes.cpu.pair_nests import PAIR, PAIR_BITS

# What the instruction takes: it is emitted as text, since LLVM 22 with this feature of
# the CPU aborts on other vectors of bfloat.
_INSTRUCTION = "vdpbf16ps $3, $2, $0"
_REGISTERS = "=v,0,v,v"
_FEWEST_LANES = 4


@dataclass(frozen=True)
class PairBuffer(FlatBuffer):
    """A flat buffer of bf16 whose neighbours are read as one integer.

    Its strides and indices count single elements.
    """

    @property
    def element(self) -> ir.Type:
        """Type of a pair."""
        return pair_type()

    @property
    def unit(self) -> int:
        """Elements that are read as one."""
        return PAIR

    def load(
        self, index: Index, lanes: int, stride: int, filled: int | None = None
    ) -> ir.Value:
        """Load pairs whose first elements are `stride` apart, all of them."""
        if lanes == 1 or stride == 0:
            return lane(self._load_pairs(index, 1), 0)
        if stride == PAIR:
            return self._load_pairs(index, lanes)
        each = (self._load_pairs(index.shifted(k * stride), 1) for k in range(lanes))
        return from_lanes([lane(pair, 0) for pair in each])

    def _load_pairs(self, index: Index, lanes: int) -> ir.Value:
        kind = ir.VectorType.get([lanes * PAIR], self.view.type.element_type)
        loaded = vector.LoadOp(kind, self.view, [index.emit()]).result
        return vector.BitCastOp(ir.VectorType.get([lanes], pair_type()), loaded).result


def as_pairs(buffer: FlatBuffer) -> PairBuffer:
    """Return a buffer as one of pairs, with the same strides."""
    return PairBuffer(buffer.view, buffer.start, buffer.strides, buffer.origin)


def pair_sources(source: FlatBuffer, depth: int) -> tuple[list[FlatBuffer], Body]:
    """Return what pairs are copied from, and what makes one of what is loaded.

    Args:
        source: Single elements, in loops of which one steps over a pair.
        depth: That loop.
    """
    apart = source.strides[depth] // PAIR
    if apart == 1:
        return [as_pairs(source)], emit_copied
    second = replace(source, origin=source.origin.shifted(apart))
    return [source, second], emit_pair


def stepping_over_pairs(operand: Operand, depth: int) -> FlatBuffer:
    """Return a factor, of single elements, in loops of which one steps over pairs."""
    assert isinstance(operand, FlatBuffer), "factors of a product of pairs are buffers"
    strides = list(operand.strides)
    strides[depth] *= PAIR
    return replace(operand, strides=tuple(strides))


def emit_pair_products(
    values: Sequence[ir.Value | None], index_of: IndexOf
) -> list[ir.Value]:
    """Add the products of pairs of two operands to a total of f32, lane by lane."""
    a, b, total = values
    assert a is not None, "a product reads its first factor"
    assert b is not None, "a product reads its second factor"
    assert total is not None, "a product adds to its total"
    lanes = max(map(lanes_of, (a, b, total)))
    a, b, total = (broadcast(value, lanes) for value in (a, b, total))
    if lanes >= _FEWEST_LANES:
        return [_multiply_add(total, a, b)]
    wide = _multiply_add(*(_widened(value) for value in (total, a, b)))
    if lanes == 1:
        return [lane(wide, 0)]
    return [shuffle(wide, wide, range(lanes))]


def _widened(value: ir.Value) -> ir.Value:
    """Return a vector of the fewest lanes that there is an instruction for."""
    lanes = lanes_of(value)
    if lanes == 1:
        return broadcast(value, _FEWEST_LANES)
    return shuffle(value, value, [k % lanes for k in range(_FEWEST_LANES)])


def _multiply_add(total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return llvm.InlineAsmOp(total.type, [total, a, b], _INSTRUCTION, _REGISTERS).res


def emit_pair(values: Sequence[ir.Value | None], index_of: IndexOf) -> list[ir.Value]:
    """Join two elements of bf16, or vectors of them, to pairs."""
    first, second = (_bits(value) for value in values[:PAIR])
    half = ir.IntegerAttr.get(pair_type(), PAIR_BITS // PAIR)
    shifted = arith.ShLIOp(second, splat(second.type, half)).result
    return [arith.OrIOp(first, shifted).result]


def emit_single(values: Sequence[ir.Value | None], index_of: IndexOf) -> list[ir.Value]:
    """Make pairs of elements of bf16, or of vectors of them, and zeros."""
    return [_bits(values[0])]


def _bits(value: ir.Value | None) -> ir.Value:
    assert value is not None, "a copy reads its operands"
    lanes = lanes_of(value)
    short = with_lanes(ir.IntegerType.get_signless(PAIR_BITS // PAIR), lanes)
    bits = arith.BitcastOp(short, value).result
    return arith.ExtUIOp(with_lanes(pair_type(), lanes), bits).result


def pair_type() -> ir.Type:
    """Return the integer that a pair is read as."""
    return ir.IntegerType.get_signless(PAIR_BITS)
