"""Owns tensors in the body of a block: where they come from, tiles in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from magweld.bindings import arith, bufferization, ir, scf
from magweld.passes.gpu.structure import workgroup_space

# What gives a part of its first operand, or that under another shape.
PASSED_THROUGH = (
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.extract_slice",
    "tensor.insert_slice",
)


def source_of(value: ir.Value) -> ir.Value:
    """Return what a tensor is a part of, or under another shape."""
    while not isinstance(value, ir.BlockArgument):
        if value.owner.name not in PASSED_THROUGH:
            return value
        value = value.owner.operands[0]
    return value


def is_global(value: ir.Value) -> bool:
    """Tell whether a tensor is (a piece of) an argument or a destination."""
    source = source_of(value)
    if not isinstance(source.type, ir.RankedTensorType):
        return False
    if not isinstance(source, ir.BlockArgument):
        return False
    return not isinstance(source.owner.owner.opview, scf.ForOp)


def temporary(shape: Sequence[int], element: ir.Type) -> ir.Value:
    """Return a tile in shared memory that nothing was written to."""
    type_ = ir.RankedTensorType.get(list(shape), element)
    made: ir.Value = bufferization.AllocTensorOp(
        type_, [], memory_space=workgroup_space()
    ).result
    return made


def index_of(number: int) -> ir.Value:
    """Return a constant of type index."""
    made: ir.Value = arith.ConstantOp(ir.IndexType.get(), number).result
    return made
