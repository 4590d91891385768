"""Owns the pass that folds slices and concatenations into each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from magweld.bindings import ir, tensor
from magweld.passes.infrastructure.base import Pattern, PatternPass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.slices import Slice, matching_dims, static_slice, whole
from magweld.passes.ir.tensor_reshapes import collapse, expand
from magweld.passes.ir.tensor_slices import extract_slice
from magweld.passes.ir.utils import users_of


def slice_of_slice(op: tensor.ExtractSliceOp, rewriter: Any) -> bool:
    """Take a slice of a slice from the tensor itself."""
    taken = static_slice(op)
    outer = static_slice(defining_op(taken.source)) if taken else None
    if taken is None or outer is None:
        return False
    rewriter.replace_op(op.operation, [emit_slice(taken.of(outer))])
    return True


def reshaped_slice(
    op: tensor.CollapseShapeOp | tensor.ExpandShapeOp, rewriter: Any
) -> bool:
    """Take a slice with the dimensions of extent one that a reshape leaves of it."""
    taken = static_slice(defining_op(op.src))
    if taken is None:
        return False
    shape = tuple(op.result.type.shape)
    kept = matching_dims(taken.sizes, shape)
    if len(kept) < len(shape):
        return False
    rewriter.replace_op(op.operation, [emit_slice(replace(taken, kept=kept))])
    return True


def slice_with_step(op: tensor.ExtractSliceOp, rewriter: Any) -> bool:
    """Take every n-th element of a dimension as a slice of that dimension split."""
    sizes, strides = list(op.static_sizes), list(op.static_strides)
    shape = list(op.source.type.shape)
    stepped = [dim for dim, step in enumerate(strides) if step != 1]
    if len(op.operation.operands) > 1 or len(stepped) != 1:
        return False
    (dim,) = stepped
    step, offsets = strides[dim], list(op.static_offsets)
    if step < 1 or shape[dim] != sizes[dim] * step or not sizes[dim]:
        return False
    split = [*shape[:dim], sizes[dim], step, *shape[dim + 1 :]]
    rank = range(len(shape))
    groups = [[d] if d < dim else [d, d + 1] if d == dim else [d + 1] for d in rank]
    source = expand(op.source, split, groups)
    boxes = [*sizes[: dim + 1], 1, *sizes[dim + 1 :]]
    places = [*offsets[:dim], 0, *offsets[dim:]]
    result = tuple(op.result.type.shape)
    kept = matching_dims(tuple(boxes), result)
    taken = Slice(source, tuple(places), tuple(boxes), kept)
    rewriter.replace_op(op.operation, [emit_slice(taken)])
    return True


def slice_of_concat(op: tensor.ExtractSliceOp, rewriter: Any) -> bool:
    """Take a slice of a concatenation from the operands that it touches."""
    taken = static_slice(op)
    concat = defining_op(taken.source) if taken else None
    if taken is None or not isinstance(concat, tensor.ConcatOp):
        return False
    dim = int(concat.dim)
    touched = _touched(concat, taken.offsets[dim], taken.sizes[dim])
    users = [static_slice(user) for user in users_of(taken.source)]
    if not touched or (len(touched) > 1 and None in users):
        return False  # others need the concatenation, which can be read as well
    parts = [emit_slice(_along(taken, dim, *part)) for part in touched]
    if len(parts) > 1:
        parts = [concatenate(taken.kept.index(dim), parts)]
    rewriter.replace_op(op.operation, parts)
    return True


def concat_of_concats(op: tensor.ConcatOp, rewriter: Any) -> bool:
    """Join the operands of a concatenation that only this one reads."""
    dim, operands = int(op.dim), []
    for value in op.operands:
        inner = defining_op(value)
        only = len(list(value.uses)) == 1
        if only and isinstance(inner, tensor.ConcatOp) and int(inner.dim) == dim:
            operands += inner.operands
        else:
            operands.append(value)
    if len(operands) == len(op.operands):
        return False
    rewriter.replace_op(op.operation, [concatenate(dim, operands)])
    return True


def concat_of_neighbours(op: tensor.ConcatOp, rewriter: Any) -> bool:
    """Join slices that lie next to each other to one slice, or to the tensor."""
    dim, operands = int(op.dim), list(op.operands)
    filled = [v for v in operands if 0 not in v.type.shape] or operands[:1]
    runs: list[_Run] = []
    for value in filled:
        longer = runs[-1].with_next(value, dim) if runs else None
        if longer is not None:
            runs[-1] = longer
        else:
            runs.append(_Run((value,)))
    if len(runs) == len(operands) > 1:
        return False
    values = [run.emit(dim) for run in runs]
    if len(values) > 1:
        values = [concatenate(dim, values)]
    rewriter.replace_op(op.operation, values)
    return True


def insert_as_concat(op: tensor.InsertSliceOp, rewriter: Any) -> bool:
    """Replace an insertion along one dimension by what is before, in and behind it."""
    place = _inserted_box(op)
    if place is None:
        return False
    shape = whole(op.dest).sizes
    partial = [d for d, size in enumerate(place.sizes) if size != shape[d]]
    if len(partial) > 1 or 0 in place.sizes:
        return False
    source = _full_rank(op.source, place)
    if not partial:
        rewriter.replace_op(op.operation, [source])
        return True
    (dim,) = partial
    first = place.offsets[dim]
    last = first + place.sizes[dim]
    every = whole(op.dest)
    before = _along(every, dim, op.dest, 0, first)
    behind = _along(every, dim, op.dest, last, shape[dim] - last)
    parts = [emit_slice(before)] if first else []
    parts += [source] + ([emit_slice(behind)] if last < shape[dim] else [])
    rewriter.replace_op(op.operation, [concatenate(dim, parts)])
    return True


def emit_slice(wanted: Slice) -> Any:
    """Return a slice as a value; all of a tensor is that tensor."""
    shape = [wanted.sizes[dim] for dim in wanted.kept]
    if tuple(wanted.source.type.shape) == wanted.sizes == tuple(shape):
        return wanted.source
    return extract_slice(wanted.source, wanted.offsets, wanted.sizes, shape)


def drop_unit_dims(value: Any, kept: Sequence[int]) -> Any:
    """Return a tensor with some of its dimensions; the others have extent one."""
    rank = ir.RankedTensorType(value.type).rank
    return value if len(kept) == rank else collapse(value, _groups(kept, rank))


def concatenate(dim: int, values: Sequence[Any]) -> Any:
    """Return tensors one behind the other along a dimension."""
    types = [ir.RankedTensorType(value.type) for value in values]
    shape = list(types[0].shape)
    shape[dim] = sum(type_.shape[dim] for type_ in types)
    result = ir.RankedTensorType.get(shape, types[0].element_type)
    return tensor.ConcatOp(result, dim, list(values)).result


def parts_of(concat: tensor.ConcatOp) -> list[tuple[int, int]]:
    """Return where each operand of a concatenation begins, and its extent."""
    dim = int(concat.dim)
    sizes = [int(value.type.shape[dim]) for value in concat.operands]
    return list(zip([0, *accumulate(sizes)], sizes, strict=False))


def _touched(
    concat: tensor.ConcatOp, offset: int, size: int
) -> list[tuple[Any, int, int]]:
    """Operands that a range touches; for each where it begins there and its extent."""
    found = []
    for value, (start, extent) in zip(concat.operands, parts_of(concat), strict=True):
        first = max(offset, start)
        last = min(offset + size, start + extent)
        if first < last:
            found.append((value, first - start, last - first))
    return found


def _along(taken: Slice, dim: int, source: Any, offset: int, size: int) -> Slice:
    """Return a slice of another tensor that differs in one dimension."""
    offsets, sizes = list(taken.offsets), list(taken.sizes)
    offsets[dim], sizes[dim] = offset, size
    return replace(taken, source=source, offsets=tuple(offsets), sizes=tuple(sizes))


@dataclass(frozen=True)
class _Run:
    """Operands of a concatenation that are neighbours in one tensor.

    Attributes:
        values: The operands, in order.
        box: Their box of the tensor; None for one operand that is no slice.
        across: The dimension of the tensor along which they follow each other.
    """

    values: tuple[Any, ...]
    box: Slice | None = None
    across: int = -1

    def with_next(self, value: Any, dim: int) -> _Run | None:
        """Return the run with one more operand, None if that is no neighbour."""
        box = self.box or static_slice(defining_op(self.values[-1]))
        following = static_slice(defining_op(value))
        if box is None or following is None:
            return None
        same = box.source == following.source and box.kept == following.kept
        if not same:
            return None
        across = self._across(box, following, dim)
        if across is None:
            return None
        size = box.sizes[across] + following.sizes[across]
        joined = _along(box, across, box.source, box.offsets[across], size)
        return _Run((*self.values, value), joined, across)

    def _across(self, box: Slice, following: Slice, dim: int) -> int | None:
        """The dimension in which one box begins where the other ends, if it is one.

        It is that of the concatenation, or one of extent one right before it that
        the slices lack.
        """
        rows = box.kept[dim]
        allowed = {rows, rows - 1} - set(box.kept) | {rows}
        moved = [d for d, o in enumerate(box.offsets) if o != following.offsets[d]]
        if len(moved) != 1 or moved[0] not in allowed:
            return None
        (across,) = moved
        known = self.across in (-1, across)
        adjacent = box.offsets[across] + box.sizes[across] == following.offsets[across]
        sizes = [d for d, n in enumerate(box.sizes) if n != following.sizes[d]]
        fits = set(sizes) <= {across}
        return across if known and adjacent and fits else None

    def emit(self, dim: int) -> Any:
        """Return the run as one value."""
        if self.box is None:
            return self.values[0]
        if self.across in self.box.kept:
            return emit_slice(self.box)
        kept = tuple(sorted({*self.box.kept, self.across}))
        value = emit_slice(replace(self.box, kept=kept))
        groups = [[d] if d < dim else [d + 1] for d in range(len(self.box.kept))]
        groups[dim] = [dim, dim + 1]
        return collapse(value, groups)


def _inserted_box(op: tensor.InsertSliceOp) -> Slice | None:
    """Where an insertion writes, as a slice of its destination; None if unknown."""
    if len(op.operation.operands) > 2 or set(op.static_strides) - {1}:
        return None
    sizes = tuple(op.static_sizes)
    kept = matching_dims(sizes, tuple(op.source.type.shape))
    return Slice(op.dest, tuple(op.static_offsets), sizes, kept)


def _full_rank(value: Any, place: Slice) -> Any:
    """Return a tensor with the dimensions of extent one of its place."""
    rank = len(place.sizes)
    if ir.RankedTensorType(value.type).rank == rank:
        return value
    return expand(value, place.sizes, _groups(place.kept, rank))


def _groups(kept: Sequence[int], rank: int) -> list[list[int]]:
    """The dimensions that each kept one stands for, those of extent one beside it."""
    if not kept:
        return []
    return [list(range(a, b)) for a, b in pairwise([0, *kept[1:], rank])]


@dataclass(frozen=True)
class FoldSlices(PatternPass):
    """Fold slices and concatenations into each other.

    A slice of a slice is one slice; a slice of a concatenation is taken from the
    operands that it touches; slices that lie next to each other and are concatenated
    again are one slice, or the tensor; a concatenation of concatenations is one. An
    insertion along one dimension becomes a concatenation.

    ```mlir
    %a = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<4x24xf32> to ...
    %b = tensor.extract_slice %x[0, 8] [4, 16] [1, 1] : tensor<4x24xf32> to ...
    %c = tensor.concat dim(1) %a, %b : ... -> tensor<4x24xf32>
    %s = tensor.extract_slice %c[0, 4] [4, 8] [1, 1] : tensor<4x24xf32> to ...
    ```
    becomes
    ```mlir
    %s = tensor.extract_slice %x[0, 4] [4, 8] [1, 1] : tensor<4x24xf32> to ...
    ```
    Neighbours may differ in a dimension that they lack right before the one of the
    concatenation, as after an unbind: a reshape then joins the two. Every n-th element
    of a dimension that is a multiple of n is a slice of the dimension split in two, and
    reshapes that add or drop dimensions of extent one become part of a slice. Left
    alone: other slices with a step, offsets that are values, insertions that are
    smaller than their destination in more than one dimension.
    """

    name: ClassVar[str] = "fold-slices"

    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the patterns for slices, concatenations and insertions."""
        return (
            (tensor.ExtractSliceOp, slice_of_slice),
            (tensor.ExtractSliceOp, slice_of_concat),
            (tensor.ExtractSliceOp, slice_with_step),
            (tensor.CollapseShapeOp, reshaped_slice),
            (tensor.ExpandShapeOp, reshaped_slice),
            (tensor.ConcatOp, concat_of_concats),
            (tensor.ConcatOp, concat_of_neighbours),
            (tensor.InsertSliceOp, insert_as_concat),
        )
