"""Owns split-rows: each thread gets neighbouring elements of the rows of a tile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir, memref
from magweld.passes.gpu.expanded_loops import split_loop
from magweld.passes.gpu.linalg_structure import (
    LoopNest,
    is_contraction,
    is_structured,
    loop_nest_of,
    operations_on_buffers,
)
from magweld.passes.gpu.row_alignment import has_contiguous_rows, row_alignment
from magweld.passes.gpu.structure import (
    VECTOR_BYTES,
    block_loop_of,
    element_bytes,
    is_in_space,
    kernels_of,
    workgroup_space,
)
from magweld.passes.gpu.thread_layout import coalesced_layout
from magweld.passes.gpu.thread_slices import thread_loop_around
from magweld.passes.gpu.tile_readers import is_read_in_part
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import users_of


@dataclass(frozen=True)
class SplitRows(Pass):
    """Split the rows that operations stream into pieces of 16 bytes.

    The loop along the rows becomes two, of which a thread has the inner one whole
    (`magweld.vector_loop`): neighbouring threads have neighbouring pieces. Tiles in
    workgroup memory get a dimension more; all operations that work on such a tile are
    split alike, so that it stays in registers where it did.

    Where types differ, the widest of what is largest in global memory has pieces of 16
    bytes: neighbours would leave gaps between wider ones, and touch each sector several
    times.

    An operation is split if its rows lie in the last dimension of all operands that
    have them, begin at multiples of a piece, and leave work for at least half of the
    threads. What has them in another dimension and lies in shared memory, such as the
    input of a transpose, is read one element at a time; a part of a tile there, such as
    the pixels of products point by point, as it lies. Contractions and windows are not
    split.
    """

    name: ClassVar[str] = "split-rows"

    threads: Annotated[int, "threads of a block"] = 256
    subgroup: Annotated[int, "threads that execute in lockstep"] = 32

    def run(self, module: Any) -> None:
        """Split the rows of all kernels."""
        for kernel in kernels_of(module):
            # Found before operations are replaced.
            every = operations_on_buffers(block_loop_of(kernel))
            for group in list(_groups(every)):
                width = self._width(group)
                if width > 1:
                    _split(group, width)

    def _width(self, group: Sequence[_Rows]) -> int:
        """Return how many elements a piece has, 1 for rows that stay whole."""
        # Not of what is read again for each row, such as the weights of a norm.
        _, element = max(
            (size for rows in group for size in rows.streamed),
            default=(0, min(rows.element for rows in group)),
        )
        width = VECTOR_BYTES // element
        while width > 1 and not all(self._fits(rows, width) for rows in group):
            width //= 2
        return width

    def _fits(self, rows: _Rows, width: int) -> bool:
        if rows.extent % width or not rows.is_aligned(width):
            return False
        extents = rows.nest.extents
        pieces = [e // width if i == rows.loop else e for i, e in enumerate(extents)]
        busy, whole = (
            coalesced_layout(tuple(counts), self.threads, self.subgroup).total
            for counts in (pieces, extents)
        )
        return 2 * busy >= whole


@dataclass(frozen=True)
class _Rows:
    """An operation and the loop along the rows of its operands.

    Attributes:
        op: The operation.
        nest: Its loops.
        loop: The loop.
    """

    op: Any
    nest: LoopNest
    loop: int

    @property
    def extent(self) -> int:
        """Elements of a row."""
        return self.nest.extents[self.loop]

    @property
    def values(self) -> list[ir.Value]:
        """Operands that have the rows in their last dimension, in pieces of a thread.

        Parts of tiles that were written otherwise are read as they lie.
        """
        triples = enumerate(zip(self.op.operands, self.nest.maps, strict=True))
        return [
            value
            for number, (value, loops) in triples
            if loops
            and loops[-1] == self.loop
            and not is_read_in_part(self.nest, number, value)
        ]

    @property
    def element(self) -> int:
        """Bytes of an element of these, the fewest."""
        return min(element_bytes(value.type.element_type) for value in self.values)

    @property
    def streamed(self) -> list[tuple[int, int]]:
        """How many elements those in global memory have, and bytes of one."""
        space = workgroup_space()
        return [
            (math.prod(value.type.shape), element_bytes(value.type.element_type))
            for value in self.values
            if not is_in_space(value, space)
        ]

    def is_aligned(self, width: int) -> bool:
        """Tell whether pieces of so many elements are aligned in all rows."""
        return all(
            row_alignment(value)
            % min(VECTOR_BYTES, width * element_bytes(value.type.element_type))
            == 0
            for value in self.values
        )


def _rows_of(op: Any) -> _Rows | None:
    """Return the rows of an operation, None if operands have them elsewhere."""
    if thread_loop_around(op) is not None or is_contraction(op):
        return None
    nest = loop_nest_of(op)
    if nest.has_windows:
        return None
    pairs = list(zip(op.operands, nest.maps, strict=True))
    last = [loops[-1] for _, loops in pairs if loops]
    for loop in dict.fromkeys(one for one in last if one is not None):
        having = [
            (value, loops)
            for number, (value, loops) in enumerate(pairs)
            if loop in loops and not _is_read_across(nest, number, value, loop)
        ]
        if (
            having
            and all(loops.index(loop) == len(loops) - 1 for _, loops in having)
            and all(has_contiguous_rows(value) for value, _ in having)
        ):
            return _Rows(op, nest, loop) if nest.extents[loop] > 1 else None
    return None


def _is_read_across(nest: LoopNest, number: int, value: ir.Value, loop: int) -> bool:
    """Tell whether an operand is an input in shared memory, its rows along others."""
    is_input = number < len(nest.maps) - nest.outputs
    if not is_input or nest.reduction or nest.maps[number][-1] == loop:
        return False
    return is_in_space(value, workgroup_space())


# ---- groups --------------------------------------------------------------------------


def _groups(operations: Iterable[Any]) -> Iterator[list[_Rows]]:
    """Yield operations that have to be split alike, or not at all, in program order."""
    every = {op.operation: _rows_of(op) for op in operations}
    left = {op: rows for op, rows in every.items() if rows is not None}
    while left:
        pending = [next(iter(left))]
        found: dict[Any, _Rows] = {}
        whole = True
        while pending:
            op = pending.pop()
            if op in found:
                continue
            rows = left.get(op)
            if rows is None:
                whole = False
                continue
            found[op] = rows
            for buffer in _tiles(rows):
                whole &= _is_split_alike(buffer, every)
                pending += [
                    user.operation
                    for user in users_of(buffer)
                    if not _is_of_other_rows(every.get(user.operation), buffer)
                ]
        for op in found:
            left.pop(op)
        if whole:
            yield [rows for op, rows in every.items() if rows and op in found]


def _tiles(rows: _Rows) -> list[Any]:
    """Return the operands in workgroup memory that have the rows."""
    space = workgroup_space()
    return [value for value in rows.values if is_in_space(value, space)]


def _is_of_other_rows(rows: _Rows | None, buffer: Any) -> bool:
    """Tell whether an operation is split along others than the rows of a tile."""
    return rows is not None and buffer not in rows.values


def _is_split_alike(buffer: Any, every: dict[Any, _Rows | None]) -> bool:
    """Tell whether a tile is an allocation of which all users have the same rows."""
    if not isinstance(buffer.owner.opview, memref.AllocOp):
        return False
    for user in users_of(buffer):
        rows = every.get(user.operation) if is_structured(user) else None
        if rows is None or buffer not in rows.values:
            return False
    return True


# ---- splitting -----------------------------------------------------------------------


def _split(group: Sequence[_Rows], width: int) -> None:
    replaced: dict[ir.Value, ir.Value] = {}
    for rows in group:
        for buffer in _tiles(rows):
            if buffer not in replaced:
                replaced[buffer] = _split_tile(buffer, width)
    for rows in group:
        split_loop(rows.op, rows.loop, width, replaced)
    for buffer in replaced:
        buffer.owner.erase()


def _split_tile(buffer: Any, width: int) -> ir.Value:
    type_ = ir.MemRefType(buffer.type)
    *outer, row = type_.shape
    shape = [*outer, row // width, width]
    split = ir.MemRefType.get(
        shape, type_.element_type, memory_space=type_.memory_space
    )
    with ir.InsertionPoint(buffer.owner), buffer.owner.location:
        made: ir.Value = memref.AllocOp(split, [], []).memref
    return made
