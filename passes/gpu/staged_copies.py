"""Owns which copies to tiles of a step may be made ahead of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, memref
from magweld.dialects.tile_graph import captured_values
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    is_structured,
    linalg_operations_in,
    loop_nest_of,
    outputs_of,
)
from magweld.passes.gpu.retyped_slices import is_sliced
from magweld.passes.gpu.stage_ring import StepLoop
from magweld.passes.gpu.structure import (
    VECTOR_LOOP,
    element_bytes,
    is_in_space,
    is_thread_loop,
    storage_of,
    workgroup_space,
)
from magweld.passes.ir.utils import users_of

# Bytes that one instruction copies asynchronously.
_COPIED_BYTES = (4, 8, 16)
_VIEWS = frozenset(
    {"memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.subview"}
)


@dataclass(frozen=True)
class StagedCopies:
    """Thread loops that copy a tile of a step, each a part of its own.

    Attributes:
        threads: The thread loops.
        tile: The buffer.
    """

    threads: tuple[Any, ...]
    tile: ir.Value


def staged_copies(block: Any, loop: StepLoop) -> Iterator[StagedCopies]:
    """Yield the copies of a loop that may be made ahead, by what they fill."""
    written = [
        storage_of(value)
        for op in linalg_operations_in(block)
        for value in outputs_of(op)
        if isinstance(value.type, ir.MemRefType)
    ]
    filled: dict[ir.Value, list[Any]] = {}
    for op in filter(is_thread_loop, loop.op.body.operations):
        copied = linalg_operations_in(op)
        if len(copied) != 1 or not _is_plain_copy(copied[0]):
            continue
        (source,), (target,) = inputs_of(copied[0]), outputs_of(copied[0])
        tile, origin = storage_of(target), storage_of(source)
        is_argument = isinstance(origin, ir.BlockArgument) and origin not in written
        is_ahead = is_argument and needed_before(op, loop) is not None
        if is_ahead and _is_tile(tile):
            filled.setdefault(tile, []).append(op)
    for tile, ops in filled.items():
        is_all = written.count(tile) == len(ops)
        if is_all and _are_apart(tile, ops) and _is_used_behind(tile, ops, loop):
            yield StagedCopies(tuple(ops), tile)


def _are_apart(tile: ir.Value, copies: Sequence[Any]) -> bool:
    """Tell whether copies fill parts of a tile that have no element in common."""
    parts = [
        list(_parts_of(outputs_of(linalg_operations_in(op)[0])[0], tile))
        for op in copies
    ]
    return all(
        any(itertools.starmap(_is_apart, itertools.product(one, other)))
        for one, other in itertools.combinations(parts, 2)
    )


@dataclass(frozen=True)
class _Part:
    """A part of a view: where it begins along each dimension, and its extents."""

    view: ir.Value
    ranges: tuple[tuple[int, int], ...]


def _is_apart(one: _Part, other: _Part) -> bool:
    """Tell whether two parts of one view have no element in common."""
    return one.view == other.view and any(
        a + m <= b or b + n <= a
        for (a, m), (b, n) in zip(one.ranges, other.ranges, strict=True)
    )


def _parts_of(value: ir.Value, tile: ir.Value) -> Iterator[_Part]:
    """Yield the parts that a view of a tile lies in, the outermost last."""
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    while value != tile:
        view = value.owner.opview
        value = view.operands[0]
        if isinstance(view, memref.SubViewOp):
            starts, steps = list(view.static_offsets), list(view.static_strides)
            if marker not in starts and set(steps) == {1}:
                ranges = zip(starts, view.static_sizes, strict=True)
                yield _Part(value, tuple(ranges))


def _is_plain_copy(op: Any) -> bool:
    """Tell whether an operation copies elements as they are, several bytes at once."""
    if len(inputs_of(op)) != 1 or len(outputs_of(op)) != 1:
        return False
    (source,), (target,) = inputs_of(op), outputs_of(op)
    types = [v.type for v in (source, target) if isinstance(v.type, ir.MemRefType)]
    if len(types) != 2 or types[0].element_type != types[1].element_type:
        return False
    nest, body = loop_nest_of(op), op.operation.regions[0].blocks[0]
    yielded = list(body.operations)[-1].operands
    is_copy = len(list(body.operations)) == 1 and yielded[0] == body.arguments[0]
    if not is_copy or nest.reduction or nest.has_windows or None in nest.maps[0]:
        return False
    width = 1
    if VECTOR_LOOP in op.operation.attributes:
        vector = ir.IntegerAttr(op.operation.attributes[VECTOR_LOOP]).value
        width = nest.extents[vector]
    size = width * element_bytes(types[0].element_type)
    return nest.maps[0] == nest.maps[1] and size in _COPIED_BYTES


def _is_tile(value: ir.Value) -> bool:
    """Tell whether a memref is an allocation of rows in shared memory."""
    if isinstance(value, ir.BlockArgument):
        return False
    is_allocation = isinstance(value.owner.opview, memref.AllocOp)
    is_shared = is_allocation and is_in_space(value, workgroup_space())
    return is_shared and bool(value.type.shape) and is_sliced(value)


def needed_before(threads: Any, loop: StepLoop) -> tuple[Any, ...] | None:
    """Return what of the body a thread loop is made from, each behind what it needs.

    None where anything but addresses is.
    """
    found: list[Any] = []

    def collect(op: Any) -> bool:
        for value in (*op.operands, *captured_values(op)):
            if isinstance(value, ir.BlockArgument):
                continue
            owner = value.owner.operation
            is_buffer = isinstance(owner.opview, memref.AllocOp)
            if is_buffer or owner.block != loop.op.body or owner in found:
                continue
            is_address = owner.name in _VIEWS or owner.name.startswith(
                ("affine.apply", "arith.")
            )
            if not is_address or not collect(owner):
                return False
            found.append(owner)
        return True

    return tuple(found) if collect(threads.operation) else None


def _is_used_behind(tile: ir.Value, copies: Sequence[Any], loop: StepLoop) -> bool:
    """Tell whether all that uses a tile is in a loop, and behind the copies to it."""
    own = [one.operation for one in copies]
    pending = list(users_of(tile))
    while pending:
        user = pending.pop()
        inside = _ancestor_in(loop.op.body, user.operation)
        if inside is None:
            return False
        if is_structured(user):
            behind = all(one.is_before_in_block(inside) for one in own)
            if inside not in own and not behind:
                return False
        else:
            pending += users_of(user.result)
    return True


def _ancestor_in(block: Any, op: Any) -> Any | None:
    """Return what of a block an operation is, or is nested in; None for others."""
    while op.parent is not None:
        if op.block == block:
            return op
        op = op.parent
    return None
