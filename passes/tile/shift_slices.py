"""Owns shift-slices: kernels take the parts of a tensor from where each begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    build_shift,
    element_bytes,
    is_tile_graph,
    operators_of,
    root_operation,
    subgraphs_of,
)
from magweld.passes.analysis.graph_body import source_value
from magweld.passes.analysis.operator_model import inputs_of
from magweld.passes.analysis.runtime_extents import stand_ins_of
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.ir.cloning import defining_op, nested_deeply
from magweld.passes.ir.slices import static_slice

# They read elements of slices alone. What a convolution reads may be transformed as a
# whole tensor.
_READERS = frozenset(
    {
        "linalg.batch_matmul",
        "linalg.generic",
        "linalg.matmul",
        "linalg.reduce",
        "linalg.transpose",
    }
)


@dataclass(frozen=True)
class ShiftSlices(FunctionPass):
    """Take equal parts of a tensor by equal subgraphs, from different places.

    A subgraph that reads plain slices of a tensor, and nothing else of it, gets the
    tensor from the first element on that it reads (`tile_graph.shift`), and its slices
    begin there. Subgraphs that do the same to the parts of a split, a chunk or an
    unbind are equal then: one kernel, and one launch by `batch-kernels`.

    ```mlir
    %0 = "tile_graph.subgraph"() ({
      ... tensor.extract_slice %x[0, 64] [8, 64] [1, 1] : tensor<8x128xf32> to ...
    ```
    becomes
    ```mlir
    %s = "tile_graph.shift"(%x) {offsets = [0, 64]} : ...
    %0 = "tile_graph.subgraph"() ({
      ... tensor.extract_slice %s[0, 0] [8, 64] [1, 1] : tensor<8x128xf32> to ...
    ```

    Left alone are slices whose first element is that of the tensor, subgraphs of
    libraries, readers that are neither element-wise, reductions nor products, and
    modules with extents that a call tells: where a slice begins may depend on one. So
    are slices whose first element is at no multiple of `alignment`: kernels for GPUs
    read several elements at a time.
    """

    name: ClassVar[str] = "shift-slices"

    alignment: Annotated[int, "bytes that places are multiples of"] = 1

    def run_on_function(self, function: Any) -> None:
        """Shift what the subgraphs of `function` read."""
        if not is_tile_graph(function) or stand_ins_of(function):
            return
        shifts = _Shifts()
        for subgraph in (op.operation for op in subgraphs_of(function)):
            if _is_generated(subgraph):
                for reads in _sliced(subgraph):
                    if reads.begin % self.alignment == 0:
                        shifts.apply(subgraph, reads)


@dataclass(frozen=True)
class _Reads:
    """The slices that a subgraph takes of a tensor.

    Attributes:
        values: The tensor, once for each edge that it comes over.
        slices: The operations.
        offsets: The least of each dimension.
    """

    values: Sequence[Any]
    slices: Sequence[Any]
    offsets: tuple[int, ...]

    @property
    def begin(self) -> int:
        """The byte of the tensor where they begin."""
        type_ = ir.RankedTensorType(self.values[0].type)
        element = 0
        for offset, extent in zip(self.offsets, type_.shape, strict=True):
            element = element * extent + offset
        return element * element_bytes(type_)


@dataclass
class _Shifts:
    """Shifted tensors, each made once, in front of its first reader."""

    _made: dict[tuple[Any, tuple[int, ...]], Any] = field(default_factory=dict)

    def apply(self, subgraph: Any, reads: _Reads) -> None:
        """Let slices begin at the first element that they take together."""
        key = (source_value(reads.values[0]), reads.offsets)
        if key not in self._made:
            with ir.InsertionPoint(subgraph), subgraph.location:
                made = build_shift(reads.values[0], reads.offsets)
            self._made[key] = made.operation.results[0]
        for op in reads.slices:
            op.operands[0] = self._made[key]
            before = ir.DenseI64ArrayAttr(op.attributes["static_offsets"])
            moved = [a - b for a, b in zip(before, reads.offsets, strict=True)]
            op.attributes["static_offsets"] = ir.DenseI64ArrayAttr.get(moved)
        for value in reads.values:
            maker = defining_op(value)
            if maker is not None and value != key[0] and not list(value.uses):
                maker.operation.erase()


def _is_generated(subgraph: Any) -> bool:
    attribute = subgraph.attributes.get("implementation")
    return attribute is None or ir.StringAttr(attribute).value == "generated"


def _sliced(subgraph: Any) -> Iterator[_Reads]:
    """Yield what a subgraph takes by slices alone, behind the first element."""
    inside = set(nested_deeply(subgraph))
    values: dict[Any, list[Any]] = {}
    for value in inputs_of(subgraph):
        values.setdefault(source_value(value), []).append(value)
    roots = [root_operation(operator).name for operator in operators_of(subgraph)]
    if not _READERS.issuperset(roots):
        return
    for edges in values.values():
        users = [
            use.owner.operation
            for value in edges
            for use in value.uses
            if use.owner.operation in inside
        ]
        found = [static_slice(op) for op in dict.fromkeys(users)]
        taken = [one for one in found if one is not None and 0 not in one.sizes]
        if len(taken) < len(found):
            continue
        starts = zip(*(one.offsets for one in taken), strict=True)
        offsets = tuple(min(start) for start in starts)
        if any(offsets):
            yield _Reads(edges, list(dict.fromkeys(users)), offsets)
