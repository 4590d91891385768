"""Owns the pass that moves slices before the transposes and reshapes they follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.graph.fold_slices import emit_slice, reshaped_slice
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.slices import Slice, static_slice
from magweld.passes.ir.tensor_slices import extract_slice


def hoist(op: tensor.ExtractSliceOp, rewriter: Any) -> bool:
    """Transpose the slice of what is transposed instead of slicing all of it."""
    taken = static_slice(op)
    if taken is None:
        return False
    transpose = defining_op(taken.source)
    if not isinstance(transpose, linalg.TransposeOp) or not transpose.results:
        return False
    permutation = list(transpose.permutation)
    # Dimension i of the transposed tensor is dimension permutation[i] before it.
    offsets, sizes = [0] * len(permutation), [0] * len(permutation)
    for dim, before in enumerate(permutation):
        offsets[before], sizes[before] = taken.offsets[dim], taken.sizes[dim]
    order = [permutation[dim] for dim in taken.kept]
    kept = sorted(order)
    value = emit_slice(
        Slice(transpose.input, tuple(offsets), tuple(sizes), tuple(kept))
    )
    if order != kept:
        shape = [sizes[dim] for dim in order]
        empty = tensor.EmptyOp(shape, value.type.element_type).result
        moved = [kept.index(dim) for dim in order]
        made = linalg.transpose(value, outs=[empty], permutation=moved)
        value = made.results[0]
    rewriter.replace_op(op.operation, [value])
    return True


def read_past_insert(op: tensor.ExtractSliceOp, rewriter: Any) -> bool:
    """Read what a slice takes where it was before a write beside it, or from that."""
    taken = static_slice(op)
    insert = defining_op(taken.source) if taken is not None else None
    if taken is None or not isinstance(insert, tensor.InsertSliceOp):
        return False
    written = _written_box(insert)
    if written is None:
        return False
    boxes = list(zip(taken.offsets, taken.sizes, *written, strict=True))
    if any(a + m <= b or b + n <= a for a, m, b, n in boxes):
        source, offsets = insert.dest, taken.offsets
    elif all(b <= a and a + m <= b + n for a, m, b, n in boxes):
        source = insert.source
        offsets = tuple(a - b for a, _, b, _ in boxes)
    else:
        return False
    shape = list(ir.RankedTensorType(op.result.type).shape)
    value = extract_slice(source, offsets, taken.sizes, shape)
    rewriter.replace_op(op.operation, [value])
    return True


def _written_box(
    insert: tensor.InsertSliceOp,
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return offsets and sizes of what is written, None unless they are known here."""
    operation = insert.operation
    offsets, sizes, strides = (
        tuple(ir.DenseI64ArrayAttr(operation.attributes[f"static_{name}"]))
        for name in ("offsets", "sizes", "strides")
    )
    shape = tuple(ir.RankedTensorType(insert.source.type).shape)
    # Values for numbers follow the two tensors; a part may lack dimensions.
    if len(operation.operands) > 2 or set(strides) - {1} or shape != sizes:
        return None
    return offsets, sizes


@dataclass(frozen=True)
class HoistSlice(PatternPass):
    """Move `tensor.extract_slice` before the transpose that it follows.

    ```mlir
    %t = linalg.transpose ins(%qkv : tensor<8x64x3x32xf32>) permutation = [2, 0, 1, 3]
    %s = tensor.extract_slice %t[1, 0, 0, 0] [1, 8, 64, 32] [1, 1, 1, 1]
    %q = tensor.collapse_shape %s [[0, 1], [2], [3]] : ... into tensor<8x64x32xf32>
    ```
    becomes
    ```mlir
    %q = tensor.extract_slice %qkv[0, 0, 1, 0] [8, 64, 1, 32] [1, 1, 1, 1]
         : tensor<8x64x3x32xf32> to tensor<8x64x32xf32>
    ```
    A slice of a tensor that part of another one was inserted in reads that other one,
    or the tensor as it was, where it takes nothing of the other of both.

    Reshapes that only merge dimensions of extent one become part of the slice. What is
    left of the transpose stays behind it, and reads as much as the slice takes.
    """

    name: ClassVar[str] = "hoist-slice"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the patterns for transposes, insertions and reshapes."""
        return (
            (tensor.ExtractSliceOp, hoist),
            (tensor.ExtractSliceOp, read_past_insert),
            (tensor.CollapseShapeOp, reshaped_slice),
        )
