"""Owns the pass that computes elementwise operations before concatenations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, linalg, tensor
from magweld.passes.analysis.elementwise import is_elementwise, rebuild
from magweld.passes.analysis.operator_model import is_rematerialised
from magweld.passes.graph.fold_slices import (
    FoldSlices,
    concatenate,
    drop_unit_dims,
    emit_slice,
    parts_of,
)
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.slices import Slice, static_slice
from magweld.passes.ir.utils import users_of

# Each operand becomes a loop nest of its own: code grows with their number.
_MAX_PARTS = 16
# A producer of these is computed again for each tile that reads it.
_WINDOWED = ("linalg.conv", "linalg.depthwise_conv", "linalg.pooling", "tensor.pad")


def sink(op: linalg.GenericOp, rewriter: Any) -> bool:
    """Compute an operation for each operand of a concatenation that it reads."""
    if not is_elementwise(op):
        return False
    found = _concat_read(op)
    if found is None or _feeds_window(op):
        return False
    loop, concat = found
    shape = list(ir.RankedTensorType(op.results[0].type).shape)
    parts = []
    for offset, size in parts_of(concat):
        offsets, sizes = [0] * len(shape), list(shape)
        offsets[loop], sizes[loop] = offset, size
        parts.append(_on_box(op, offsets, sizes))
    rewriter.replace_op(op.operation, [concatenate(loop, parts)])
    return True


def hoist_slice(op: tensor.ExtractSliceOp, rewriter: Any) -> bool:
    """Compute an elementwise operation for a slice of it, where slices alone are read.

    Together they are no more than the whole.
    """
    taken = static_slice(op)
    producer = defining_op(taken.source) if taken else None
    if taken is None or 0 in taken.sizes or not is_elementwise(producer):
        return False
    if not _read_in_parts(producer):
        return False
    value = _on_box(producer, taken.offsets, taken.sizes)
    # A reshape and no slice of all of it, which this pattern would find again.
    rewriter.replace_op(op.operation, [drop_unit_dims(value, taken.kept)])
    return True


def _read_in_parts(producer: linalg.GenericOp) -> bool:
    users = users_of(producer.results[0])
    if len(users) == 1:
        return True
    slices = [static_slice(user) for user in users]
    read = sum(math.prod(taken.sizes) for taken in slices if taken is not None)
    if None in slices or read > math.prod(producer.results[0].type.shape):
        return False
    readers = [reader for user in users for reader in users_of(user.results[0])]
    return _is_light(producer) and all(
        isinstance(reader, tensor.ConcatOp) or is_elementwise(reader)
        for reader in readers
    )


def _is_light(op: linalg.GenericOp) -> bool:
    """Whether nothing but elementwise operations and views make what it reads.

    What stands behind a reduction or product is computed with it.
    """
    pending, seen = [op], set()
    while pending:
        for value in pending.pop().operands:
            maker = defining_op(value)
            if maker is None or maker.operation in seen:
                continue
            seen.add(maker.operation)
            if is_elementwise(maker) or maker.operation.name.startswith("tensor."):
                pending.append(maker)
            elif not is_rematerialised(value):
                return False
    return True


def _concat_read(op: linalg.GenericOp) -> tuple[int, tensor.ConcatOp] | None:
    """The first concatenation that an operation reads, and the loop along it."""
    maps = [attr.value for attr in op.indexing_maps]
    for value, map_ in zip(op.inputs, maps[:-1], strict=True):
        concat = defining_op(value)
        if not isinstance(concat, tensor.ConcatOp):
            continue
        few = len(concat.operands) <= _MAX_PARTS
        empty = any(0 in operand.type.shape for operand in concat.operands)
        if few and not empty and all(map(is_elementwise, users_of(value))):
            return map_.results[int(concat.dim)].position, concat
    return None


def _feeds_window(op: linalg.GenericOp) -> bool:
    """Whether a convolution or pooling reads it, at once or element by element."""
    pending, seen = [op], set()
    while pending:
        current = pending.pop()
        for user in users_of(current.results[0]):
            if user.operation.name.startswith(_WINDOWED):
                return True
            if user.operation not in seen and is_elementwise(user):
                seen.add(user.operation)
                pending.append(user)
    return False


def _on_box(op: linalg.GenericOp, offsets: Sequence[int], sizes: Sequence[int]) -> Any:
    """Return a box of the result of an elementwise operation, computed alone."""
    maps = [attr.value for attr in op.indexing_maps]
    operands = []
    for value, map_ in zip(op.inputs, maps[:-1], strict=True):
        if isinstance(value.type, ir.RankedTensorType):
            loops = [expr.position for expr in map_.results]
            box = Slice(
                value,
                tuple(offsets[loop] for loop in loops),
                tuple(sizes[loop] for loop in loops),
                tuple(range(len(loops))),
            )
            operands.append(emit_slice(box))
        else:
            operands.append(value)
    return rebuild(op, operands, maps, list(sizes)).results[0]


@dataclass(frozen=True)
class SinkConcat(PatternPass):
    """Compute elementwise operations before the concatenation that they read.

    ```mlir
    %c = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> ...
    %y = linalg.generic {elementwise} ins(%c, %s : tensor<4x16xf32>, tensor<16xf32>)
    ```
    becomes
    ```mlir
    %s0 = tensor.extract_slice %s[0] [8] [1] : tensor<16xf32> to tensor<8xf32>
    %y0 = linalg.generic {elementwise} ins(%a, %s0 : tensor<4x8xf32>, tensor<8xf32>)
    ...
    %y = tensor.concat dim(1) %y0, %y1 : ... -> tensor<4x16xf32>
    ```
    What the concatenation holds is then never in memory by itself, and each part is
    computed into its place of the result. Slices that alone are read of an elementwise
    operation are taken of its operands. Left alone: concatenations that others than
    elementwise operations read or that have more than 16 operands, operations that
    convolutions or poolings read, several slices of what stands behind a reduction or
    product, and what `hoist-expand` leaves alone.
    """

    name: ClassVar[str] = "sink-concat"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return its two patterns, and those of fold-slices for what they make."""
        return (
            *FoldSlices().patterns(),
            (linalg.GenericOp, sink),
            (tensor.ExtractSliceOp, hoist_slice),
        )
