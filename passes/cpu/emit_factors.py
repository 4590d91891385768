"""Owns the emission of copies that a product makes of a factor as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from magweld.bindings import ir
from magweld.passes.cpu.emit_body import emit_copied, emit_widened
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand, scratch
from magweld.passes.cpu.emit_index import Index
from magweld.passes.cpu.emit_nest import emit_copy, emit_paired_copy
from magweld.passes.cpu.emit_pairs import as_pairs, pair_type, stepping_over_pairs
from magweld.passes.cpu.loop_nest import LoopNest
from magweld.passes.cpu.pair_nests import has_pairs, paired_nest, points
from magweld.passes.cpu.register_tile import NONE, RegisterTile, VectorUnit
from magweld.passes.tiling.first_cache import LINE_BYTES

# Elements of an operand that a copy in f32 of fits the second cache.
_MOST_WIDENED = 1 << 16


def rows_of_halves(
    nest: LoopNest, tile: RegisterTile, operands: Sequence[Operand]
) -> int:
    """Return which factor is read by single elements of f16 or bf16, or NONE.

    Two to four instructions widen one element, as many as widen a whole vector, and it
    is read again for each block of columns.
    """
    if not nest.product or tile.vector_dim == NONE:
        return NONE
    columns, output = tile.vector_dim, operands[-1]
    equal = [n for n, a in enumerate(nest.inputs) if not a.strides[columns]]
    if len(equal) != 1 or not isinstance(output, FlatBuffer):
        return NONE
    (number,) = equal
    rows = operands[number]
    if not isinstance(rows, FlatBuffer) or not isinstance(output.element, ir.F32Type):
        return NONE
    narrow = isinstance(rows.element, ir.F16Type | ir.BF16Type)
    again = nest.extents[columns] > tile.lanes * tile.unroll[columns]
    kept = points(nest, nest.inputs[number]) <= _MOST_WIDENED
    return number if narrow and kept and (again or tile.packed_input != NONE) else NONE


def emit_pairs(
    factors: Sequence[Operand], nest: LoopNest, tile: RegisterTile, unit: VectorUnit
) -> list[FlatBuffer]:
    """Return the factors of a product in the loops of its nest of pairs.

    The panel is of single elements still. The other one is copied where the elements
    of its pairs are not neighbours.
    """
    depth, number = tile.pairs, 1 - tile.packed_input
    found = [stepping_over_pairs(factor, depth) for factor in factors]
    if has_pairs(nest, nest.inputs[number], depth):
        found[number] = as_pairs(found[number])
        return found
    pairs = paired_nest(nest, depth)
    copy = _Copy.of(found[number], pairs, number, pair_type())
    along = copy.loops.index(depth)
    emit_paired_copy(
        copy.source, copy.target, copy.extents, along, pairs.odd_pairs, unit
    )
    found[number] = copy.in_nest
    return found


def emit_widened_rows(
    source: Operand, nest: LoopNest, number: int, unit: VectorUnit
) -> FlatBuffer:
    """Emit a copy of an input in f32; return it in the loops of the nest."""
    copy = _Copy.of(source, nest, number, ir.F32Type.get())
    emit_copy([copy.source], copy.target, copy.extents, emit_widened, unit)
    return copy.in_nest


def emit_apart_rows(
    source: Operand, nest: LoopNest, number: int, unit: VectorUnit
) -> FlatBuffer:
    """Emit a copy of an input whose rows begin in different sets of the first cache."""
    assert isinstance(source, FlatBuffer), "factors of a product are buffers"
    line = LINE_BYTES * 8 // int(source.element.width)
    copy = _Copy.of(source, nest, number, source.element, line)
    emit_copy([copy.source], copy.target, copy.extents, emit_copied, unit)
    return copy.in_nest


@dataclass(frozen=True)
class _Copy:
    """The copy of an input of a nest in contiguous memory.

    Attributes:
        loops: The loops of the nest that move the input; the copy has these alone.
        extents: Theirs.
        source: The input in these loops.
        target: The copy in these loops.
        in_nest: The copy in the loops of the nest.
    """

    loops: list[int]
    extents: tuple[int, ...]
    source: FlatBuffer
    target: FlatBuffer
    in_nest: FlatBuffer

    @classmethod
    def of(
        cls,
        source: Operand,
        nest: LoopNest,
        number: int,
        kind: ir.Type,
        line: int = 0,
    ) -> _Copy:
        """Emit the memory of a copy of an input with elements of a type.

        Args:
            source: The input.
            nest: The nest.
            number: Which input it is.
            kind: Type of an element.
            line: Elements of a cache line, if rows are to begin an odd number of these
                apart; 0 if they follow each other.
        """
        assert isinstance(source, FlatBuffer), "factors of a product are buffers"
        moving = [d for d, stride in enumerate(nest.inputs[number].strides) if stride]
        # The longest steps outermost: it is read as it lies in memory.
        moving.sort(key=lambda d: -abs(source.strides[d]))
        extents = tuple(nest.extents[d] for d in moving)
        held = list(extents)
        if line:
            held[-1] = (ceil(held[-1] / line) | 1) * line
        strides = [0] * len(nest.extents)
        for k, d in enumerate(moving):
            strides[d] = prod(held[k + 1 :])
        start = Index().emit()
        copy = FlatBuffer(scratch(prod(held), kind), start, tuple(strides), Index())
        read, written = (
            replace(buffer, strides=tuple(buffer.strides[d] for d in moving))
            for buffer in (source, copy)
        )
        return cls(moving, extents, read, written, copy)
