"""Owns fuse-window-copies: what windows read is copied a few channels at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir, memref, scf
from magweld.passes.cpu.buffer_roots import root_of
from magweld.passes.cpu.emit_index import index_constant
from magweld.passes.cpu.emit_prefetch import is_far
from magweld.passes.cpu.emit_views import (
    Offset,
    aligned_buffer,
    emit_loops,
    plus,
    view,
)
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.cpu.sweeps import sweeps_of
from magweld.passes.cpu.window_copies import WindowCopy, find_copy
from magweld.passes.infrastructure.base import Pass
from magweld.passes.tiling.first_cache import LINE_BYTES

# Into the first cache: it is read next, and takes a part of it.
LOCALITY = 3


@dataclass(frozen=True)
class FuseWindowCopies(Pass):
    """Copy the image of windows over single channels right before they are computed.

    A window with a border reads a copy of its image. Where that is more than the first
    cache holds, it is copied a few channels at a time, and what is made of these
    follows: the copy does not leave the cache. While a few channels are computed, the
    next ones are fetched, pieces of rows far apart that prefetchers do not find.

        b[c, 1 .. 9, 1 .. 57] = x[c, ...]        for cc = 0 to 144 step 2:
        y[c] = window(b[c]), c < 144       =>        b[c, 1 .. 9, ...] = x[cc + c, ...]
                                                     y[cc + c] = window(b[c]), c < 2
    """

    name: ClassVar[str] = "fuse-window-copies"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the windows of all kernels of the module."""
        for function in kernels_of(module):
            for sweep in list(sweeps_of(function)):
                found = find_copy(sweep)
                if found is not None:
                    with sweep.root.location:
                        _Fuser(found).rewrite()


class _Fuser:
    """Rewrites one copy with the sweep that reads it."""

    def __init__(self, copy: WindowCopy) -> None:
        self._copy = copy
        self._parts: dict[tuple[ir.Value, int], ir.Value] = {}

    def rewrite(self) -> None:
        """Emit the loop in place of the sweep."""
        copy = self._copy
        buffer = self._smaller_buffer()
        with ir.InsertionPoint(copy.sweep.last):
            loop = scf.ForOp(*map(index_constant, (0, copy.channels, copy.step)))
            with ir.InsertionPoint(loop.body):
                self._emit_step(loop.induction_variable, buffer)
                scf.YieldOp([])
        for op in (*copy.sweep.operations, copy.writer):
            op.erase()
        _drop(copy.buffer)

    def _smaller_buffer(self) -> ir.Value:
        """Emit the buffer of a few channels where that of all is."""
        copy = self._copy
        shape = list(copy.buffer.type.shape)
        shape[copy.dim] = copy.step
        with ir.InsertionPoint(copy.buffer.owner):
            made = aligned_buffer(shape, copy.buffer.type.element_type)
        if copy.fill is not None:
            copy.fill.operands[0] = made
        return made

    def _emit_step(self, channel: ir.Value, buffer: ir.Value) -> None:
        copy = self._copy
        *read, _ = zip(copy.writer.operands, copy.dims[copy.writer], strict=True)
        for operand, dim in read:
            if dim is not None and is_far(operand):
                self._fetch(operand, dim, channel)
        for op in (copy.writer, *copy.sweep.operations):
            dims = copy.dims[op]
            operands = [
                self._of_step(operand, dim, channel, buffer)
                for operand, dim in zip(op.operands, dims, strict=True)
            ]
            made = op.clone().operation
            for number, operand in enumerate(operands):
                made.operands[number] = operand

    def _of_step(
        self, operand: ir.Value, dim: int | None, channel: ir.Value, buffer: ir.Value
    ) -> ir.Value:
        """What stands for an operand in a step."""
        if root_of(operand) == self._copy.buffer:
            return self._of_buffer(operand, buffer)
        return operand if dim is None else self._part(operand, dim, channel)

    def _part(self, operand: ir.Value, dim: int, channel: ir.Value) -> ir.Value:
        """The channels of a step of an operand, one value for equal operands."""
        if (operand, dim) not in self._parts:
            sizes = list(operand.type.shape)
            offsets: list[Offset] = [0] * len(sizes)
            offsets[dim], sizes[dim] = channel, self._copy.step
            self._parts[operand, dim] = view(operand, offsets, sizes)
        return self._parts[operand, dim]

    def _of_buffer(self, operand: ir.Value, buffer: ir.Value) -> ir.Value:
        """A view of the smaller buffer in place of one of the other."""
        if operand == self._copy.buffer:
            return buffer
        part = operand.owner.opview
        dynamic, moving = ir.ShapedType.get_dynamic_size(), iter(part.offsets)
        offsets = [next(moving) if n == dynamic else n for n in part.static_offsets]
        sizes = list(part.static_sizes)
        offsets[self._copy.dim], sizes[self._copy.dim] = 0, self._copy.step
        return view(buffer, offsets, sizes)

    def _fetch(self, operand: ir.Value, dim: int, channel: ir.Value) -> None:
        """Emit the prefetches of what the next step copies.

        Behind the last one that is something else, which is no error of a prefetch.
        """
        line = LINE_BYTES * 8 // int(operand.type.element_type.width)
        ranges = [(0, size, 1) for size in operand.type.shape]
        ranges[-1] = (0, operand.type.shape[-1], line)
        ranges[dim] = (0, self._copy.step, 1)

        def fetch(at: Sequence[Offset]) -> None:
            moved = [*at]
            moved[dim] = plus(plus(channel, self._copy.step), at[dim])
            places = [index_constant(n) if isinstance(n, int) else n for n in moved]
            memref.PrefetchOp(
                operand,
                places,
                isWrite=False,
                localityHint=LOCALITY,
                isDataCache=True,
            )

        emit_loops(ranges, fetch)


def _drop(buffer: ir.Value) -> None:
    """Erase a buffer that is no longer used, with its views."""
    for use in list(buffer.uses):
        use.owner.operation.erase()
    buffer.owner.operation.erase()
