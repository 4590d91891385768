"""Owns stage-in-shared-memory: which tiles of a block get a buffer of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir, linalg, scf, tensor
from magweld.diagnostics import UnsupportedError
from magweld.passes.gpu.block_tensors import (
    PASSED_THROUGH,
    is_global,
    source_of,
    temporary,
)
from magweld.passes.gpu.linalg_structure import (
    LoopNest,
    has_windows,
    inputs_of,
    is_contraction,
    is_structured,
    linalg_operations_in,
    loop_nest_of,
    outputs_of,
    reads_across_rows,
    reads_output,
)
from magweld.passes.gpu.structure import (
    block_loop_of,
    element_bytes,
    kernels_of,
    phases_in,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import groups_of, node_of, users_of

_SCALAR_DIALECTS = ("affine", "arith", "linalg", "math")
_FOOTPRINT = "tile_graph.footprint"
# Two words: the least that is copied at once where rows are of whole pieces.
_PAIR_BYTES = 8
_ALLOWED = frozenset(
    {
        *PASSED_THROUGH,
        "bufferization.alloc_tensor",
        "scf.for",
        "scf.forall.in_parallel",
        "scf.yield",
        "tensor.empty",
        "tensor.extract",
    }
)


@dataclass(frozen=True)
class StageInSharedMemory(Pass):
    """Give tiles that a block works on buffers in workgroup memory.

    Five kinds of tile get one, each as `bufferization.alloc_tensor` with
    `#gpu.address_space<workgroup>`:

    - operands of contractions that come from global memory: copied there,
    - other tiles from global memory that several operations read, up to
      `reuse-bytes`: copied there once, where the footprint that was planned leaves
      room for it in `capacity`,
    - weights of windows, which neighbours read row by row, likewise,
    - accumulators of reductions that would otherwise lie in global memory,
    - every tile that an operation of the block hands to the next (`tensor.empty`), the
      copies that the plan makes of what is read across rows among them.

    Of such a copy dimensions that are one row in memory become one: threads move rows
    in wide pieces, and behind rows padding lies. So are dimensions of what products
    read whose rows are no whole pairs of words: pieces are no wider than these, and who
    goes down a column of an odd number of words meets no bank twice without padding.
    What of all this needs no sharing is moved to registers by keep-tiles-in-registers.
    """

    name: ClassVar[str] = "stage-in-shared-memory"

    reuse_bytes: Annotated[int, "largest tile that is copied for reuse alone"] = 32768
    capacity: Annotated[int, "bytes of shared memory that a block may use"] = 49152

    def run(self, module: Any) -> None:
        """Stage the tiles of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            _check_operations(loop)
            self._stage_operands(loop)
            room = self._stage_reused(loop, self.capacity - _planned_bytes(kernel))
            self._stage_weights(loop, room)
            _join_rows(loop)
            _stage_accumulators(loop)
            _place_temporaries(loop)

    def _stage_operands(self, loop: Any) -> None:
        for op in filter(is_contraction, linalg_operations_in(loop)):
            for position, value in enumerate(inputs_of(op)):
                if is_global(value):
                    with ir.InsertionPoint(op), op.location:
                        op.operands[position] = _copy_of(value)

    def _stage_reused(self, loop: Any, room: int) -> int:
        """Copy what several operations read; return the bytes that are left."""
        readers: dict[Any, list[tuple[Any, int]]] = {}
        for op in linalg_operations_in(loop):
            for position, value in enumerate(inputs_of(op)):
                if is_global(value) and not isinstance(value, ir.BlockArgument):
                    readers.setdefault(value, []).append((op, position))
        for value, uses in readers.items():
            if len({op.operation for op, _ in uses}) < 2:
                continue
            if _bytes(value.type) > min(self.reuse_bytes, room):
                continue
            room -= _bytes(value.type)
            with ir.InsertionPoint.after(value.owner), value.location:
                staged = _copy_of(value)
            for op, position in uses:
                if _is_planned_copy(op):
                    op.results[0].replace_all_uses_with(staged)
                    op.operation.erase()
                else:
                    op.operands[position] = staged
        return room

    def _stage_weights(self, loop: Any, room: int) -> None:
        """Copy what windows multiply images by, in front of them."""
        for op in filter(has_windows, linalg_operations_in(loop)):
            for position, value in enumerate(inputs_of(op)):
                if not is_global(value) or not _is_weight(op, position):
                    continue
                if _bytes(value.type) <= min(self.reuse_bytes, room):
                    room -= _bytes(value.type)
                    with ir.InsertionPoint(op), op.location:
                        op.operands[position] = _copy_of(value)


def _is_weight(op: Any, position: int) -> bool:
    """Tell whether each element of an operand is one factor for all pixels."""
    nest = loop_nest_of(op)
    loops = nest.maps[position]
    moving = [loop for loop in nest.parallel if nest.extents[loop] > 1]
    return None not in loops and any(loop not in loops for loop in moving)


def _is_planned_copy(op: Any) -> bool:
    return isinstance(op, linalg.CopyOp) and _is_empty(outputs_of(op)[0])


def _join_rows(loop: Any) -> None:
    """Copy dimensions that are one row in memory as one.

    For who reads across rows those behind the rows, for products and windows all, if
    the rows are odd.
    """
    for op in linalg_operations_in(loop):
        if not isinstance(op, linalg.CopyOp) or not is_global(inputs_of(op)[0]):
            continue
        (source,), across = inputs_of(op), _across(op.results[0])
        if across is None and _has_odd_rows(source) and _is_operand(op.results[0]):
            across = -1
        shape = list(source.type.shape)
        first = len(shape) if across is None else _first_of_row(source, across)
        if first < len(shape) - 1:
            with ir.InsertionPoint(op), op.location:
                joined = _copy_with_rows(source, first)
            op.results[0].replace_all_uses_with(joined)
            op.operation.erase()


def _has_odd_rows(value: ir.Value) -> bool:
    """Tell whether rows of a tensor are no whole pairs of words."""
    type_ = ir.RankedTensorType(value.type)
    rows = list(type_.shape)[-1:]
    return any(row * element_bytes(type_.element_type) % _PAIR_BYTES for row in rows)


def _is_operand(tile: ir.Value) -> bool:
    """Tell whether products or windows are all that reads a tile."""
    readers = list(users_of(tile))
    return bool(readers) and all(
        is_structured(op) and (is_contraction(op) or has_windows(op)) for op in readers
    )


def _across(tile: ir.Value) -> int | None:
    """Return the last dimension along which readers of a tile have rows of their own.

    None where all of them go along its rows.
    """
    found: list[int] = []
    for op in filter(is_structured, users_of(tile)):
        nest = loop_nest_of(op)
        for position, value in enumerate(inputs_of(op)):
            if value == tile and reads_across_rows(nest, position):
                loops = nest.maps[position]
                found.append(loops.index(_innermost(nest, loops)))
    return max(found, default=None)


def _innermost(nest: LoopNest, loops: tuple[int | None, ...]) -> int:
    """Return the innermost loop of the first output that is one of some."""
    return [i for i in nest.parallel if i in loops and nest.extents[i] > 1][-1]


def _first_of_row(value: ir.Value, across: int) -> int:
    """Return the first dimension behind one of those that are one row in memory."""
    dimensions = _dimensions_of(value)
    first = len(dimensions) - 1
    while first - 1 > across and dimensions[first].is_whole:
        if not dimensions[first - 1].is_dense:
            break
        first -= 1
    return first


@dataclass(frozen=True)
class _Dimension:
    """What a slice of a tensor in global memory has of a dimension.

    Attributes:
        is_whole: Whether it has all of it.
        is_dense: Whether it leaves none out between those that it has.
    """

    is_whole: bool
    is_dense: bool


def _dimensions_of(value: ir.Value) -> list[_Dimension]:
    """Return what a value has of each dimension; of unknown ones nothing is whole."""
    shape = list(value.type.shape)
    if isinstance(value, ir.BlockArgument):
        return [_Dimension(True, True)] * len(shape)
    op = value.owner.opview
    if isinstance(op, tensor.CollapseShapeOp):
        outer = _dimensions_of(op.src)
        return [_joined([outer[dim] for dim in dims]) for dims in groups_of(op)]
    is_slice = isinstance(op, tensor.ExtractSliceOp)
    if not is_slice or len(op.source.type.shape) != len(shape):
        return [_Dimension(False, False)] * len(shape)
    return [
        _Dimension(outer.is_whole and size == whole, outer.is_dense and stride == 1)
        for outer, size, whole, stride in zip(
            _dimensions_of(op.source),
            shape,
            op.source.type.shape,
            op.static_strides,
            strict=True,
        )
    ]


def _joined(dimensions: list[_Dimension]) -> _Dimension:
    """Return what a value has of dimensions that are one."""
    first, *others = dimensions
    whole = all(one.is_whole for one in others)
    return _Dimension(first.is_whole and whole, first.is_dense and whole)


def _copy_with_rows(value: ir.Value, first: int) -> ir.Value:
    """Return a copy of which the dimensions from `first` on are a row."""
    shape = list(value.type.shape)
    groups = [*([i] for i in range(first)), list(range(first, len(shape)))]
    rows = [*shape[:first], math.prod(shape[first:])]
    type_ = ir.RankedTensorType.get(rows, value.type.element_type)
    copied = _copy_of(tensor.CollapseShapeOp(type_, value, groups).result)
    made: ir.Value = tensor.ExpandShapeOp(value.type, copied, groups, [], shape).result
    return made


def _planned_bytes(kernel: Any) -> int:
    """Return the footprint that the plan of a kernel has, 0 without one."""
    planned = kernel.attributes.get(_FOOTPRINT)
    return 0 if planned is None else int(ir.IntegerAttr(planned).value)


def _check_operations(loop: Any) -> None:
    for op in phases_in(loop.body):
        name = op.operation.name
        if name in _ALLOWED or name.partition(".")[0] in _SCALAR_DIALECTS:
            continue
        raise UnsupportedError(
            "gpu-tile-operation",
            f"'{name}' in a tile has no GPU lowering",
            where=str(op.location),
            nodes=[node_of(op.location)],
            hint="let a library compute this operator, or tile it on its own",
        )


def _stage_accumulators(loop: Any) -> None:
    """Let reductions accumulate in workgroup memory, whatever their destination."""
    for op in linalg_operations_in(loop):
        if not op.results or not loop_nest_of(op).reduction:
            continue
        for position in range(len(outputs_of(op))):
            _redirect(op, position)


def _redirect(op: Any, number: int) -> None:
    """Follow the accumulator `number` of `op` to its first value and stage that."""
    position = len(inputs_of(op)) + number
    value = op.operands[position]
    while not is_global(value):
        step = _earlier(value)
        if step is None:
            return
        op, position = step
        value = op.operands[position]
    with ir.InsertionPoint(op), op.location:
        is_fill = op.operation.name == "linalg.fill"
        op.operands[position] = _temporary(value.type) if is_fill else _copy_of(value)


def _earlier(value: ir.Value) -> tuple[Any, int] | None:
    """Return the operation and operand that `value` is an update of."""
    if isinstance(value, ir.BlockArgument):
        loop = value.owner.owner.opview
        if not isinstance(loop, scf.ForOp):
            return None
        # Operands are bounds and step, then one a carried value; arguments start
        # with the induction variable.
        return loop, 3 + value.arg_number - 1
    op = value.owner.opview
    if isinstance(op, scf.ForOp):
        return op, 3 + ir.OpResult(value).result_number
    if op.operation.name in PASSED_THROUGH:
        return op, 0
    if linalg_operations_in(op):
        return op, len(inputs_of(op)) + ir.OpResult(value).result_number
    return None


def _place_temporaries(loop: Any) -> None:
    """Give every use of an empty tensor in the block a buffer of its own."""
    for op in phases_in(loop.body):
        for position, value in enumerate(op.operands):
            if _is_empty(value):
                with ir.InsertionPoint(op), op.location:
                    op.operands[position] = _temporary(value.type)
    for op in linalg_operations_in(loop):
        for number, value in enumerate(outputs_of(op)):
            if _is_input(value, loop):
                with ir.InsertionPoint(op), op.location:
                    read = reads_output(op, number)
                    made = _copy_of(value) if read else _temporary(value.type)
                    op.operands[len(inputs_of(op)) + number] = made


def _is_empty(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and isinstance(
        value.owner.opview, tensor.EmptyOp
    )


def _is_input(value: ir.Value, loop: Any) -> bool:
    source = source_of(value)
    return is_global(value) and source.owner != loop.body


def _temporary(type_: ir.Type) -> ir.Value:
    ranked = ir.RankedTensorType(type_)
    return temporary(ranked.shape, ranked.element_type)


def _copy_of(value: ir.Value) -> ir.Value:
    made: ir.Value = linalg.copy(value, outs=[_temporary(value.type)])
    return made


def _bytes(type_: ir.Type) -> int:
    ranked = ir.RankedTensorType(type_)
    return int(math.prod(ranked.shape)) * element_bytes(ranked.element_type)
