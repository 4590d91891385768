"""Owns join-tile-loops: loops of products along one row in memory become one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from magweld.bindings import ir, linalg, scf, tensor
from magweld.passes.gpu.linalg_structure import (
    Index,
    LoopNest,
    inputs_of,
    is_contraction,
    is_structured,
    linalg_operations_in,
    loop_nest_of,
    outputs_of,
)
from magweld.passes.gpu.structure import block_loop_of, kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.linalg_builder import map_array
from magweld.passes.ir.tensor_reshapes import collapse, expand
from magweld.passes.ir.utils import operations_of, users_of

_REBUILT = linalg.ContractOp | linalg.GenericOp
# What the new operations have of their own.
_OWN = frozenset({"indexing_maps", "iterator_types", "operandSegmentSizes"})


@dataclass(frozen=True)
class JoinTileLoops(Pass):
    """Make loops of products that walk one row in memory one loop.

    The pixels of an image are such a row where a tile has all of its inner loop:

        linalg.contract {(n, f, y, x, c)} ins(%x, %w : tensor<1x16x4x28xf16>, ...)
            =>   linalg.contract {(n, f, p, c)} ins(%j, %w : tensor<1x16x112xf16>, ...)

    so that a product is one of matrices, whose columns may be whole fragments, and rows
    are copied in long pieces. What is computed with its result element by element is
    joined with it; windows see the result as it was. Every tensor has both loops side
    by side, or none of them, in a tile that is a row where it lies: a tile of the
    block, or a slice that has whole rows. Products whose results are read element by
    element in another order are left alone, and those in loops.
    """

    name: ClassVar[str] = "join-tile-loops"

    def run(self, module: Any) -> None:
        """Join the loops of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            while (found := _next_rows(loop)) is not None:
                _Joining().join(found)


class _Pair(NamedTuple):
    """Two loops of an operation that are to be one."""

    outer: int
    inner: int


def _next_rows(loop: Any) -> list[tuple[Any, _Pair]] | None:
    """Return operations of a block, in order, with loops that can be joined."""
    for op in linalg_operations_in(loop):
        if op.operation.parent != loop.operation or not is_contraction(op):
            continue
        for pair in _neighbours(loop_nest_of(op)):
            found = _joined_with(op, pair)
            if found is not None:
                every = linalg_operations_in(loop)
                # Operations are known by what they are until one is changed.
                return [
                    (one, found[one.operation])
                    for one in every
                    if one.operation in found
                ]
    return None


def _neighbours(nest: LoopNest) -> Iterator[_Pair]:
    """Yield the loops of neighbouring dimensions of the result."""
    written = nest.output_maps[0]
    for outer, inner in itertools.pairwise(written):
        if outer is None or inner is None:
            continue
        if min(nest.extents[outer], nest.extents[inner]) > 1:
            yield _Pair(outer, inner)


def _joined_with(product: Any, pair: _Pair) -> dict[Any, _Pair] | None:
    """Return what is joined with a product, None where that cannot be.

    That is what is done with its result element by element, and with what that makes;
    of other readers those that can be.
    """
    if not _can_join(product, pair):
        return None
    found: dict[Any, _Pair] = {product.operation: pair}
    pending = [product]
    while pending:
        op = pending.pop()
        outputs = loop_nest_of(op).output_maps
        for result, loops in zip(op.operation.results, outputs, strict=True):
            if found[op.operation].outer not in loops:
                continue
            dim = loops.index(found[op.operation].outer)
            for user in filter(is_structured, users_of(result)):
                if user.operation in found:
                    continue
                other = _pair_of_reader(user, result, dim)
                if other is not None and _can_join(user, other):
                    found[user.operation] = other
                    pending.append(user)
                elif _is_elementwise(user):
                    return None
    return found


def _pair_of_reader(op: Any, value: ir.Value, dim: int) -> _Pair | None:
    """Return the loops along two dimensions of what an operation reads."""
    if not isinstance(op, _REBUILT):
        return None
    position = list(op.operands).index(value)
    outer, inner = loop_nest_of(op).maps[position][dim : dim + 2]
    return None if outer is None or inner is None else _Pair(outer, inner)


def _can_join(op: Any, pair: _Pair) -> bool:
    """Tell whether the operands of an operation have a pair of loops as one row."""
    if not isinstance(op, _REBUILT) or operations_of(op, linalg.IndexOp):
        return False
    nest = loop_nest_of(op)
    if nest.has_windows:
        return False
    for value, loops in zip(op.operands, nest.maps, strict=True):
        moved = [dim for dim, loop in enumerate(loops) if loop in pair]
        if not moved:
            continue
        first = moved[0]
        if loops[first : first + 2] != pair or len(moved) != len(pair):
            return False
        if not _is_one_row(value, first):
            return False
    return True


def _is_one_row(value: ir.Value, dim: int) -> bool:
    """Tell whether two dimensions of a tile, from `dim` on, are one where it lies."""
    if isinstance(value, ir.BlockArgument):
        # What a sequential loop carries may be a slice of anything.
        return not isinstance(value.owner.owner.opview, scf.ForOp)
    op = value.owner.opview
    if isinstance(op, tensor.ExtractSliceOp):
        shape = list(op.source.type.shape)
        is_whole = op.static_sizes[dim + 1] == shape[dim + 1]
        is_dense = list(op.static_strides)[dim : dim + 2] == [1, 1]
        same_rank = len(shape) == len(value.type.shape)
        return same_rank and is_whole and is_dense and _is_one_row(op.source, dim)
    if is_structured(op):
        return _is_one_row(outputs_of(op)[list(op.operation.results).index(value)], dim)
    return isinstance(op, tensor.EmptyOp)


def _is_elementwise(op: Any) -> bool:
    nest = loop_nest_of(op)
    return not nest.reduction and not nest.has_windows


class _Joining:
    """Builds operations anew with one loop for two."""

    def __init__(self) -> None:
        # Tiles on joined dimensions, and where these are, by the views of them.
        self._known: dict[ir.Value, tuple[ir.Value, int]] = {}

    def join(self, pairs: Iterable[tuple[Any, _Pair]]) -> None:
        """Replace operations, in the order of the block."""
        for op, pair in pairs:
            with ir.InsertionPoint(op), op.location:
                self._replace(op, pair)
        for view in self._known:
            if not any(True for _ in view.uses):
                view.owner.erase()

    def _replace(self, op: Any, pair: _Pair) -> None:
        nest = loop_nest_of(op)
        operands, maps = [], []
        for value, loops, indices in zip(
            op.operands, nest.maps, nest.indices, strict=True
        ):
            has_pair = pair.outer in loops
            dim = loops.index(pair.outer) if has_pair else 0
            operands.append(self._joined(value, dim) if has_pair else value)
            kept = [i for i, loop in enumerate(loops) if loop != pair.inner]
            maps.append(_map([indices[i] for i in kept], nest, pair))
        made = _rebuilt(op, pair, operands, maps)
        for old, new, loops in zip(
            op.operation.results, made.operation.results, nest.output_maps, strict=True
        ):
            self._replace_result(old, new, loops, pair)
        op.operation.erase()

    def _replace_result(
        self,
        old: ir.Value,
        new: ir.Value,
        loops: tuple[int | None, ...],
        pair: _Pair,
    ) -> None:
        if pair.outer not in loops:
            old.replace_all_uses_with(new)
            return
        dim = loops.index(pair.outer)
        view = expand(new, list(old.type.shape), _groups(len(loops), dim))
        self._known[view] = new, dim
        old.replace_all_uses_with(view)

    def _joined(self, value: ir.Value, dim: int) -> ir.Value:
        """Return a tile with two dimensions joined, from `dim` on."""
        known, at = self._known.get(value, (None, None))
        if known is not None and at == dim:
            return known
        op = None if isinstance(value, ir.BlockArgument) else value.owner.opview
        if isinstance(op, tensor.EmptyOp):
            shape = list(value.type.shape)
            shape[dim : dim + 2] = [math.prod(shape[dim : dim + 2])]
            made: ir.Value = tensor.EmptyOp(shape, value.type.element_type).result
            return made
        if isinstance(op, linalg.FillOp):
            number, into = op.operation.operands
            made = linalg.fill(number, outs=[self._joined(into, dim)])
            return made
        made = collapse(value, _groups(len(value.type.shape), dim))
        return made


def _groups(rank: int, dim: int) -> list[list[int]]:
    """Return the dimensions of a tensor with two of them together."""
    others = [[i] for i in range(rank)]
    return [*others[:dim], [dim, dim + 1], *others[dim + 2 :]]


def _map(indices: list[Index], nest: LoopNest, pair: _Pair) -> ir.AffineMap:
    """Return the map of an operand whose dimensions are single loops or constants."""
    results = [
        ir.AffineConstantExpr.get(index.constant)
        if index.loop is None
        else ir.AffineDimExpr.get(index.loop - (index.loop > pair.inner))
        for index in indices
    ]
    return ir.AffineMap.get(len(nest.extents) - 1, 0, results)


def _rebuilt(
    op: Any, pair: _Pair, operands: list[ir.Value], maps: list[ir.AffineMap]
) -> Any:
    """Build an operation with the body and the marks of another one."""
    count = len(inputs_of(op))
    inputs, outputs = operands[:count], operands[count:]
    types = [value.type for value in outputs]
    if isinstance(op, linalg.ContractOp):
        made = linalg.ContractOp(types, inputs, outputs, map_array(maps))
        linalg.fill_builtin_region(made.operation)
    else:
        kinds = [kind for i, kind in enumerate(op.iterator_types) if i != pair.inner]
        iterators = ir.ArrayAttr.get(kinds)
        made = linalg.GenericOp(types, inputs, outputs, map_array(maps), iterators)
        copy = op.operation.clone()
        copy.regions[0].blocks[0].append_to(made.regions[0])
        copy.operation.erase()
    for name in op.attributes:
        if name not in _OWN:
            made.attributes[name] = op.attributes[name]
    return made
