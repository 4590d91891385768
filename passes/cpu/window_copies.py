"""Owns which windows read a copy that can be made a few channels at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from magweld.bindings import ir, memref
from magweld.dialects.tile_graph import type_bytes
from magweld.passes.analysis.index_maps import linear_index
from magweld.passes.cpu.buffer_roots import (
    is_pure,
    roots_read,
    roots_written,
    users_of_buffer,
)
from magweld.passes.cpu.generic_forms import (
    fill_value,
    has_one_result,
    has_reduction,
    maps_of,
)
from magweld.passes.cpu.sweeps import SWEEP, Sweep
from magweld.passes.tiling.first_cache import LINE_BYTES, SETS, WAYS
from magweld.passes.tiling.regions import LinearIndex
from magweld.passes.tiling.tile_sizes import largest_divisor

_CACHE_BYTES = LINE_BYTES * SETS * WAYS
# Parts of the first cache: a larger buffer is copied in steps, which take so much of it
# at most unless a channel alone takes more.
_LARGE, _STEP = _CACHE_BYTES // 2, _CACHE_BYTES // 4


@dataclass(frozen=True)
class WindowCopy:
    """A copy that windows read, and what is done for each channel alone.

    Attributes:
        buffer: The copy, with a border.
        fill: What fills its border, None where there is none.
        writer: What writes all the rest.
        sweep: The windows, with what is around them.
        dim: Dimension of the channels in the buffer.
        channels: How many there are.
        step: How many are copied at a time.
        dims: Of the writer and of each operation of the sweep, the dimension of the
            channels in each operand, None in those that all channels read.
    """

    buffer: ir.Value
    fill: ir.Operation | None
    writer: ir.Operation
    sweep: Sweep
    dim: int
    channels: int
    step: int
    dims: dict[ir.Operation, list[int | None]]


class _Users(NamedTuple):
    """What uses a buffer beside the windows."""

    fill: ir.Operation | None
    writer: ir.Operation


def find_copy(sweep: Sweep) -> WindowCopy | None:
    """Return the copy that windows read, None where it is to stay as it is."""
    root = sweep.root
    for number, operand in enumerate(list(root.operands)[:-1]):
        buffer = _buffer_of(operand)
        if buffer is None or type_bytes(buffer.type) <= _LARGE:
            continue
        users = _users(buffer, sweep)
        if users is None or not _may_move(users.writer, sweep):
            continue
        for dim in _channel_dims(sweep, number, buffer):
            found = _along(dim, number, buffer, users, sweep)
            if found is not None:
                return found
    return None


def _buffer_of(operand: ir.Value) -> ir.Value | None:
    """Return the allocation that an operand is, or is a box of, of the same rank."""
    owner = operand.owner
    if isinstance(owner, ir.Block):
        return None
    if isinstance(owner.opview, memref.SubViewOp):
        part = owner.opview
        plain = all(step == 1 for step in part.static_strides)
        same = len(part.static_sizes) == len(operand.type.shape)
        whole = part.source.owner
        is_own = plain and same and not isinstance(whole, ir.Block)
        return part.source if is_own and _is_allocation(whole) else None
    return operand if _is_allocation(owner) else None


def _is_allocation(op: ir.Operation) -> bool:
    return isinstance(op.opview, memref.AllocOp)


def _users(buffer: ir.Value, sweep: Sweep) -> _Users | None:
    """Return what fills and writes a buffer, None if others use it."""
    fills, writers = [], []
    for op in users_of_buffer(buffer) - {sweep.root}:
        if fill_value(op) is not None and op.operands[0] == buffer:
            fills.append(op)
        else:
            writers.append(op)
    if len(fills) > 1 or len(writers) != 1:
        return None
    fill, (writer,) = fills[0] if fills else None, writers
    return _Users(fill, writer) if _writes_alone(writer, buffer, sweep) else None


def _writes_alone(writer: ir.Operation, buffer: ir.Value, sweep: Sweep) -> bool:
    """Whether an element-wise operation of its own writes to a box of a buffer."""
    if writer.name != "linalg.generic" or SWEEP in writer.attributes:
        return False
    if writer.block != sweep.root.block or has_reduction(writer):
        return False
    written = has_one_result(writer) and _buffer_of(_result(writer)) == buffer
    reads = roots_read(writer)
    return written and maps_of(writer)[-1].is_permutation and buffer not in reads


def _result(writer: ir.Operation) -> ir.Value:
    return writer.operands[len(writer.operands) - 1]


def _may_move(writer: ir.Operation, sweep: Sweep) -> bool:
    """Whether a writer may run in the place of the sweep, in turns with it."""
    read = roots_read(writer)
    block = [op.operation for op in writer.block.operations]
    first, last = block.index(writer), block.index(sweep.last)
    between = [op for op in block[first + 1 : last + 1] if not is_pure(op)]
    if first > block.index(sweep.root) or None in read:
        return False
    return all(
        op.name == "linalg.generic" and not {*read, None} & roots_written(op)
        for op in between
    )


def _channel_dims(sweep: Sweep, number: int, buffer: ir.Value) -> Iterator[int]:
    """Yield the dimensions that one parallel loop alone walks, from inside.

    Only those in front of the dimensions of the image, over which windows slide: the
    others lie in pieces that are too short to be copied by themselves.
    """
    root = sweep.root
    kinds = [str(kind) for kind in root.attributes["iterator_types"]]
    exprs = list(maps_of(root)[number].results)
    image = [dim for dim, expr in enumerate(exprs) if _slides(linear_index(expr))]
    for dim in reversed(range(min(image, default=0))):
        loop = exprs[dim]
        if not isinstance(loop, ir.AffineDimExpr) or buffer.type.shape[dim] == 1:
            continue
        if "parallel" in kinds[loop.position]:
            yield dim


def _along(
    dim: int, number: int, buffer: ir.Value, users: _Users, sweep: Sweep
) -> WindowCopy | None:
    channels = buffer.type.shape[dim]
    boxes = (sweep.root.operands[number], _result(users.writer))
    if any(box.type.shape[dim] != channels for box in boxes):
        return None
    each = type_bytes(buffer.type) // channels
    step = largest_divisor(channels, max(1, _STEP // each))
    if each > _LARGE or step == channels:
        return None
    loops = _loops(dim, number, users.writer, sweep)
    dims = {op: found for op, loop in loops.items() if (found := _dims_of(op, loop))}
    if not loops or len(dims) < len(loops):
        return None
    return WindowCopy(
        buffer, users.fill, users.writer, sweep, dim, channels, step, dims
    )


def _loops(
    dim: int, number: int, writer: ir.Operation, sweep: Sweep
) -> dict[ir.Operation, int]:
    """Return the loop over channels of a writer and of each operation of a sweep.

    Nothing where the result does not have the channels as a dimension of its own.
    """
    root = sweep.root
    read, made = maps_of(root)[number], maps_of(root)[-1]
    loop = read.results[dim].position
    places = [n for n, e in enumerate(made.results) if linear_index(e) == _alone(loop)]
    if len(places) != 1:
        return {}
    (place,) = places
    found = {writer: maps_of(writer)[-1].results[dim].position, root: loop}
    for op in sweep.operations:
        if op != root:
            at = list(op.operands).index(sweep.result)
            found[op] = maps_of(op)[at].results[place].position
    return found


def _dims_of(op: ir.Operation, loop: int) -> list[int | None] | None:
    """Return the dimension of each operand that a loop alone walks.

    None where it has to do with another one as well, or an output does not move, or
    the body asks which iteration it is.
    """
    found: list[int | None] = []
    for map_ in maps_of(op):
        indices = [linear_index(expr) for expr in map_.results]
        moved = [n for n, index in enumerate(indices) if _moves(index, loop)]
        if len(moved) > 1 or any(indices[n] != _alone(loop) for n in moved):
            return None
        found.append(moved[0] if moved else None)
    inputs = int(op.attributes["operandSegmentSizes"][0])
    body = op.regions[0].blocks[0].operations
    plain = all(
        inner.operation.name.startswith(("arith.", "math.", "linalg.yield"))
        for inner in body
    )
    return found if plain and None not in found[inputs:] else None


def _slides(index: LinearIndex | None) -> bool:
    return index is not None and len(index.terms) > 1


def _moves(index: LinearIndex | None, loop: int) -> bool:
    return index is None or any(term == loop for term, _ in index.terms)


def _alone(loop: int) -> LinearIndex:
    return LinearIndex(((loop, 1),))
