"""Owns calls of matrix instructions: what registers they take and give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import arith, ir, llvm, vector


def multiplied(
    name: str,
    left: Sequence[ir.Value],
    right: Sequence[ir.Value],
    sums: Sequence[ir.Value],
) -> list[ir.Value]:
    """Build sums and a product of fragments.

    Args:
        name: The intrinsic.
        left: Operands of a lane of the left factor.
        right: Of the right factor.
        sums: What a lane has of the result so far.
    """
    if name.startswith("llvm.nvvm."):
        return _mma(name, [*left, *right], sums)
    return _mfma(name, [*left, *right], sums)


def vector_of(values: Sequence[ir.Value]) -> ir.Value:
    """Build a vector of values."""
    type_ = ir.VectorType.get([len(values)], values[0].type)
    made: ir.Value = vector.FromElementsOp(type_, list(values)).result
    return made


def _as_bits(value: ir.Value, type_: ir.Type) -> ir.Value:
    made: ir.Value = llvm.BitcastOp(type_, value).result
    return made


def _mfma(
    name: str, factors: Sequence[ir.Value], sums: Sequence[ir.Value]
) -> list[ir.Value]:
    """Call an intrinsic of AMD: vectors, and numbers that change nothing."""
    if name.endswith("bf16.1k"):
        i16 = ir.IntegerType.get_signless(16)
        bits = ir.VectorType.get([4], i16)
        factors = [_as_bits(factor, bits) for factor in factors]
    none = arith.ConstantOp(ir.IntegerType.get_signless(32), 0).result
    accumulator = vector_of(sums)
    call = llvm.CallIntrinsicOp(
        accumulator.type, name, [*factors, accumulator, none, none, none], [], []
    )
    return [
        vector.ExtractOp(call.results_, [], [number]).result
        for number in range(len(sums))
    ]


def _mma(
    name: str, factors: Sequence[ir.Value], sums: Sequence[ir.Value]
) -> list[ir.Value]:
    """Call an intrinsic of NVIDIA: registers of 32 bits, results as a structure."""
    if name.endswith("bf16"):
        i32 = ir.IntegerType.get_signless(32)
        factors = [_as_bits(factor, i32) for factor in factors]
    fields = ", ".join(str(value.type) for value in sums)
    type_ = ir.Type.parse(f"!llvm.struct<({fields})>")
    call = llvm.CallIntrinsicOp(type_, name, [*factors, *sums], [], [])
    return [
        llvm.ExtractValueOp(
            value.type, call.results_, ir.DenseI64ArrayAttr.get([number])
        ).result
        for number, value in enumerate(sums)
    ]


def half_pair(low: Any, high: Any) -> ir.Value | None:
    """Build two halves that are roundings of f32 at once, None for other values."""
    sources = [_rounded(value) for value in (low, high)]
    if any(source is None for source in sources):
        return None
    kind = "bf16" if isinstance(low.type, ir.BF16Type) else "f16"
    type_ = ir.VectorType.get([2], low.type)
    made: ir.Value = llvm.CallIntrinsicOp(
        type_, f"llvm.nvvm.ff2{kind}x2.rn", sources[::-1], [], []
    ).results_
    return made


def _rounded(value: Any) -> Any | None:
    """Return the f32 that a value is a rounding of, None for other values."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.opview
    is_rounding = isinstance(op, arith.TruncFOp)
    return op.operands[0] if is_rounding and _is_single(op.operands[0]) else None


def _is_single(value: Any) -> bool:
    return isinstance(value.type, ir.F32Type)
