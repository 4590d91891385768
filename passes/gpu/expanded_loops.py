"""Owns linalg operations on buffers whose loops are split into several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import affine, ir, linalg, memref
from magweld.passes.gpu.linalg_structure import loop_nest_of
from magweld.passes.gpu.structure import VECTOR_LOOP
from magweld.passes.ir.linalg_builder import iterator_array, map_array
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class Expansion:
    """Loops that become several, outermost first.

    Attributes:
        parts: Extents of the new loops, by the number of the old one.
    """

    parts: Mapping[int, tuple[int, ...]]

    def first(self, loop: int) -> int:
        """Return the number of the first of the loops that an old one becomes."""
        return sum(len(self.parts.get(i, (0,))) for i in range(loop))

    def loops(self, loop: int) -> range:
        """Return the numbers of the loops that an old one becomes."""
        first = self.first(loop)
        return range(first, first + len(self.parts.get(loop, (0,))))


def expand_loops(
    op: Any, expansion: Expansion, replaced: Mapping[ir.Value, ir.Value]
) -> linalg.GenericOp:
    """Build an operation with more loops in front of `op`, which is left as it is.

    Args:
        op: A linalg operation on buffers, indexed by single loops.
        expansion: How its loops are split.
        replaced: Operands that have been split already, by what they were; the others
            are seen through `memref.expand_shape`.
    """
    nest = loop_nest_of(op)
    total = expansion.first(len(nest.extents))
    with ir.InsertionPoint(op), op.location:
        operands, maps = [], []
        for value, loops, indices in zip(
            op.operands, nest.maps, nest.indices, strict=True
        ):
            results: list[ir.AffineExpr] = []
            for loop, index in zip(loops, indices, strict=True):
                results += (
                    [ir.AffineConstantExpr.get(index.constant)]
                    if loop is None
                    else [ir.AffineDimExpr.get(i) for i in expansion.loops(loop)]
                )
            maps.append(ir.AffineMap.get(total, 0, results))
            known = replaced.get(value)
            operands.append(_expanded(value, loops, expansion) if not known else known)
        reduced = [i for loop in nest.reduction for i in expansion.loops(loop)]
        count = len(operands) - nest.outputs
        generic = linalg.GenericOp(
            [],
            operands[:count],
            operands[count:],
            map_array(maps),
            iterator_array(total, reduced),
        )
        copy = op.operation.clone()
    copy.regions[0].blocks[0].append_to(generic.regions[0])
    copy.operation.erase()
    _count_in_parts(generic, expansion)
    return generic


def split_loop(
    op: Any, loop: int, width: int, replaced: Mapping[ir.Value, ir.Value]
) -> None:
    """Replace an operation by one with two loops for one, the inner one of `width`.

    Each thread runs the inner loop whole: `magweld.vector_loop`. The other arguments
    are those of `expand_loops`.
    """
    extent = loop_nest_of(op).extents[loop]
    expansion = Expansion({loop: (extent // width, width)})
    made = expand_loops(op, expansion, replaced)
    i64 = ir.IntegerType.get_signless(64)
    inner = ir.IntegerAttr.get(i64, expansion.first(loop) + 1)
    made.operation.attributes[VECTOR_LOOP] = inner
    op.operation.erase()


def _expanded(
    value: ir.Value, loops: Sequence[int | None], expansion: Expansion
) -> ir.Value:
    """Return an operand with a dimension for each of the loops that index it."""
    if not any(loop in expansion.parts for loop in loops):
        return value
    return split_dimensions(
        value,
        [
            (size,) if loop is None else expansion.parts.get(loop, (size,))
            for loop, size in zip(loops, value.type.shape, strict=True)
        ],
    )


def split_dimensions(value: ir.Value, parts: Sequence[Sequence[int]]) -> ir.Value:
    """Build the view of a memref that has several dimensions for each.

    Args:
        value: A memref of static shape, whatever its strides.
        parts: Their extents, outermost first, for each dimension of `value`.
    """
    type_ = ir.MemRefType(value.type)
    strides, offset = type_.get_strides_and_offset()
    shape: list[int] = []
    steps: list[int] = []
    groups: list[list[int]] = []
    for sizes, stride in zip(parts, strides, strict=True):
        groups.append(list(range(len(shape), len(shape) + len(sizes))))
        shape += sizes
        steps += [stride * math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    plain = ir.MemRefType.get(shape, type_.element_type, None, type_.memory_space)
    strided = ir.MemRefType.get(
        shape,
        type_.element_type,
        ir.StridedLayoutAttr.get(offset, steps),
        type_.memory_space,
    )
    is_plain = plain.get_strides_and_offset() == strided.get_strides_and_offset()
    had_layout = isinstance(type_.layout, ir.StridedLayoutAttr)
    result = plain if is_plain and not had_layout else strided
    made: ir.Value = memref.ExpandShapeOp(result, value, groups, [], shape).result
    return made


def _count_in_parts(generic: Any, expansion: Expansion) -> None:
    """Make `linalg.index` count in the old loops again."""
    for op in operations_of(generic, linalg.IndexOp):
        loop = ir.IntegerAttr(op.dim).value
        parts = expansion.parts.get(loop, (0,))
        numbers = expansion.loops(loop)
        with ir.InsertionPoint(op), op.location:
            terms = [linalg.IndexOp(number).result for number in numbers]
            whole: ir.AffineExpr = ir.AffineConstantExpr.get(0)
            for i in range(len(parts)):
                whole += ir.AffineDimExpr.get(i) * math.prod(parts[i + 1 :])
            map_ = ir.AffineMap.get(len(parts), 0, [whole])
            op.result.replace_all_uses_with(affine.AffineApplyOp(map_, terms).result)
        op.operation.erase()
