"""Owns index arithmetic while code is emitted: a value plus a constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from magweld.bindings import arith, ir, scf
from magweld.passes.cpu.register_tile import Piece


@dataclass(frozen=True)
class Index:
    """The index `value + constant`; no value stands for zero."""

    value: ir.Value | None = None
    constant: int = 0

    def plus(self, other: Index) -> Index:
        """Return the sum, emitting an addition when both have a value."""
        constant = self.constant + other.constant
        if self.value is None or other.value is None:
            return Index(self.value if other.value is None else other.value, constant)
        return Index(arith.AddIOp(self.value, other.value).result, constant)

    def times(self, factor: int) -> Index:
        """Return the product with a constant."""
        if self.value is None or factor == 0:
            return Index(None, self.constant * factor)
        if factor == 1:
            return self
        product = arith.MulIOp(self.value, index_constant(factor)).result
        return Index(product, self.constant * factor)

    def shifted(self, constant: int) -> Index:
        """Return the index moved by a constant."""
        return Index(self.value, self.constant + constant)

    def emit(self) -> ir.Value:
        """Return the index as one value."""
        if self.value is None:
            return index_constant(self.constant)
        if self.constant == 0:
            return self.value
        return arith.AddIOp(self.value, index_constant(self.constant)).result


def index_constant(number: int) -> ir.Value:
    """Emit a constant of type index."""
    return arith.ConstantOp(ir.IndexType.get(), number).result


def emit_loop(piece: Piece, body: Callable[[Index], None]) -> None:
    """Emit the steps of a piece around a body that carries nothing."""
    if not piece.is_loop:
        body(Index(None, piece.start))
        return
    loop = scf.ForOp(
        index_constant(piece.start),
        index_constant(piece.stop),
        index_constant(piece.step),
    )
    with ir.InsertionPoint(loop.body):
        body(Index(loop.induction_variable))
        scf.YieldOp([])


def emit_carrying_loop(
    piece: Piece,
    state: list[ir.Value],
    body: Callable[[Index, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """Emit the steps of a piece around a body that carries values; return the last."""
    if not piece.is_loop:
        return body(Index(None, piece.start), state)
    loop = scf.ForOp(
        index_constant(piece.start),
        index_constant(piece.stop),
        index_constant(piece.step),
        state,
    )
    with ir.InsertionPoint(loop.body):
        carried = body(Index(loop.induction_variable), list(loop.inner_iter_args))
        scf.YieldOp(carried)
    return list(loop.results)
