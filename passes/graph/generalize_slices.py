"""Owns the pass that makes slices operations on single elements, for GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir, tensor
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.slices import is_read_in_place, static_slice
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class GeneralizeSlices(FunctionPass):
    """Make slices that are tensors of their own by copying each element.

    ```mlir
    %s = tensor.extract_slice %x[0, 8] [4, 8] [1, 1]
    %e = tensor.expand_shape %s ...
    ```
    becomes
    ```mlir
    %s = tensor.extract_slice %x[0, 8] [4, 8] [1, 1]
    %c = linalg.generic {parallel} ins(%s) outs(%empty) {linalg.yield %in}
    %e = tensor.expand_shape %c ...
    ```
    so that blocks share a slice as they share other operators on elements, where one
    block would have moved all of it. For devices on which threads share a tile. Slices
    that operators read in place stay: nothing is moved for them.
    """

    name: ClassVar[str] = "generalize-slices"

    def run_on_function(self, function: Any) -> None:
        """Replace the slices of a function."""
        for op in operations_of(function.operation, tensor.ExtractSliceOp):
            is_box = static_slice(op) is not None and 0 not in op.result.type.shape
            if not is_box or is_read_in_place(op.operation):
                continue
            with ir.InsertionPoint.after(op), op.location:
                made = _copy(op.result)
            op.result.replace_all_uses_except(made, made.owner.operation)


def _copy(value: Any) -> Any:
    type_ = ir.RankedTensorType(value.type)
    identity = ir.AffineMap.get_identity(len(type_.shape))
    empty = tensor.empty(type_.shape, type_.element_type)
    copied = build_generic([value], [empty], [identity] * 2, lambda v: [v[0]])
    return copied.results[0]
