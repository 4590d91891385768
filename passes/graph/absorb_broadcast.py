"""Owns the pass that reads what is repeated along dimensions before the repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg
from magweld.passes.graph.generic_reads import loops_known, replace_reads
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.contractions import are_floats, build_contraction


def absorb(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Read the source of a repeated operand through a map without the new loops."""
    if not op.results:
        return False  # on buffers nothing says that the source is unchanged
    maps = [attr.value for attr in op.indexing_maps]
    operands = list(op.inputs)
    for number, value in enumerate(operands):
        repeated = _repetition(value)
        if repeated is None:
            continue
        source, kept = repeated
        results = list(maps[number].results)
        through = ir.AffineMap.get(maps[number].n_dims, 0, [results[d] for d in kept])
        if loops_known([*maps[:number], through, *maps[number + 1 :]]):
            operands[number], maps[number] = source, through
    if operands == list(op.inputs):
        return False
    replace_reads(op, rewriter, operands, maps)
    return True


def absorb_weight(op: linalg.BatchMatmulOp, rewriter: Any) -> bool:
    """Compute a product with an operand that is the same for the whole batch."""
    if not op.results or not are_floats(op):
        return False
    maps = [attr.value for attr in op.indexing_maps]
    operands = list(op.inputs)
    for number, value in enumerate(operands):
        repeated = _repetition(value)
        if repeated is not None and repeated[1] == [1, 2]:
            operands[number] = repeated[0]
            results = list(maps[number].results)[1:]
            maps[number] = ir.AffineMap.get(maps[number].n_dims, 0, results)
    # With both of them there would be no batch.
    if [value.type.rank for value in operands].count(2) != 1:
        return False
    product = build_contraction(operands, op.outputs[0], maps)
    rewriter.replace_op(op.operation, [product])
    return True


def _repetition(value: Any) -> tuple[Any, list[int]] | None:
    """The source of a tensor that repeats it, and where its dimensions went."""
    copy = defining_op(value)
    if not isinstance(copy, linalg.GenericOp) or len(copy.inputs) != 1:
        return None
    *body, terminator = copy.regions[0].blocks[0].operations
    if body or list(terminator.operands) != [copy.regions[0].blocks[0].arguments[0]]:
        return None
    taken, written = (attr.value for attr in copy.indexing_maps)
    if written != ir.AffineMap.get_identity(written.n_dims):
        return None
    if not all(isinstance(expr, ir.AffineDimExpr) for expr in taken.results):
        return None
    kept = [int(expr.position) for expr in taken.results]
    # Dimensions in another order are a transpose, which has reasons of its own to stay.
    rising = kept == sorted(set(kept))
    return (copy.inputs[0], kept) if rising else None


@dataclass(frozen=True)
class AbsorbBroadcast(PatternPass):
    """Fold copies that repeat a tensor along new dimensions into generic readers.

    ```mlir
    %w = linalg.generic {indexing_maps = [(d0, d1, d2) -> (d1, d2), ...]} {copy}
         ins(%weight : tensor<96x384xf32>) outs(%e : tensor<56x96x384xf32>)
    %r = linalg.generic {indexing_maps = [..., (b, m, n, k) -> (b, k, n), ...]}
         ins(%x, %w : ...) {product}
    ```
    reads `%weight` through `(b, m, n, k) -> (k, n)`; a `linalg.batch_matmul` becomes
    such a product. Operands from which alone a loop has its extent stay.
    """

    name: ClassVar[str] = "absorb-broadcast"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the pattern for generic operations and the one for products."""
        return ((linalg.GenericOp, absorb), (linalg.BatchMatmulOp, absorb_weight))
