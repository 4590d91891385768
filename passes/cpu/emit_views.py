"""Owns small idioms on buffers: views of them, and loops over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from magweld.bindings import arith, ir, memref, scf
from magweld.dialects.tile_graph import PLACE, PlaceAttr, type_bytes
from magweld.passes.cpu.emit_index import index_constant
from magweld.passes.ir.utils import located_error
from magweld.passes.tiling.first_cache import LINE_BYTES
from magweld.passes.tiling.winograd_buffers import layer_distance

# An index that is known, or a value.
Offset: TypeAlias = "ir.Value | int"


def emit_loops(
    ranges: Sequence[tuple[int, int, int]],
    body: Callable[[Sequence[Offset]], None],
    at: Sequence[Offset] = (),
) -> None:
    """Emit loops around a body; one of a single step is none."""
    if not ranges:
        body(at)
        return
    (start, stop, step), *rest = ranges
    if start + step >= stop:
        emit_loops(rest, body, (*at, start))
        return
    loop = scf.ForOp(*map(index_constant, (start, stop, step)))
    with ir.InsertionPoint(loop.body):
        emit_loops(rest, body, (*at, loop.induction_variable))
        scf.YieldOp([])


def times(index: Offset, factor: int) -> Offset:
    """Return a multiple of an index."""
    if isinstance(index, int):
        return index * factor
    return arith.muli(index, index_constant(factor))


def plus(index: Offset, other: Offset) -> Offset:
    """Return the sum of two indices."""
    if isinstance(index, int) and isinstance(other, int):
        return index + other
    values = (index_constant(n) if isinstance(n, int) else n for n in (index, other))
    return arith.addi(*values)


def at_most(index: Offset, most: int) -> Offset:
    """Return an index, or a constant that it exceeds."""
    if isinstance(index, int):
        return min(index, most)
    return arith.minsi(index, index_constant(most))


def layer_at(value: ir.Value, number: Offset) -> ir.Value:
    """Layer `number` of a buffer, without its first dimension."""
    shape = list(value.type.shape[1:])
    part = view(value, (number, *[0] * len(shape)), (1, *shape))
    strides, _ = part.type.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(dynamic, strides[1:])
    kind = ir.MemRefType.get(shape, value.type.element_type, layout)
    metadata = memref.ExtractStridedMetadataOp(part)
    return memref.ReinterpretCastOp(
        kind,
        metadata.results[0],
        [metadata.results[1]],
        [],
        [],
        [dynamic],
        shape,
        strides[1:],
    ).result


def view(
    source: ir.Value,
    offsets: Sequence[Offset],
    sizes: Sequence[int],
    steps: Sequence[int] | None = None,
) -> ir.Value:
    """Emit a view of a box of a buffer."""
    return memref.subview(
        source, list(offsets), list(sizes), list(steps or [1] * len(sizes))
    )


def layers(
    shape: Sequence[int], element: ir.Type, place: PlaceAttr | None = None
) -> ir.Value:
    """Emit a buffer whose layers begin in different sets of a cache.

    Args:
        shape: Of all layers.
        element: Type of an element.
        place: Where the plan has it.
    """
    distance = layer_distance(shape, element.width // 8)
    strides = [distance, *(prod(shape[k + 1 :]) for k in range(1, len(shape)))]
    layout = ir.StridedLayoutAttr.get(0, strides)
    kind = ir.MemRefType.get(list(shape), element, layout)
    whole = aligned_buffer([shape[0] * distance], element, place)
    return memref.ReinterpretCastOp(
        kind, whole, [], [], [], [0], list(shape), strides
    ).result


def aligned_buffer(
    shape: Sequence[int], element: ir.Type, place: PlaceAttr | None = None
) -> ir.Value:
    """Emit a buffer that begins with a cache line.

    Args:
        shape: Its shape.
        element: Type of an element.
        place: Where the plan has it.

    Raises:
        PassError: It has another size there.
    """
    kind = ir.MemRefType.get(list(shape), element)
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES)
    made = memref.AllocOp(kind, [], [], alignment=alignment)
    if place is not None:
        if place.bytes != type_bytes(kind):
            raise located_error(made, f"expected {type_bytes(kind)} bytes at {place}")
        made.operation.attributes[PLACE] = place
    return made.result


def layer(value: ir.Value, number: int) -> ir.Value:
    """Layer `number` of a buffer with static strides."""
    shape = list(value.type.shape[1:])
    (distance, *strides), _ = value.type.get_strides_and_offset()
    offset = number * distance
    layout = ir.StridedLayoutAttr.get(offset, strides)
    kind = ir.MemRefType.get(shape, value.type.element_type, layout)
    return memref.ReinterpretCastOp(
        kind, value, [], [], [], [offset], shape, strides
    ).result


def with_long_rows(value: ir.Value) -> ir.Value:
    """A buffer of contiguous layers whose dimensions behind the second are one."""
    first, second, *rest = value.type.shape
    (distance, *_), offset = value.type.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, [distance, prod(rest), 1])
    shape = [first, second, prod(rest)]
    kind = ir.MemRefType.get(shape, value.type.element_type, layout)
    groups = [[0], [1], list(range(2, len(rest) + 2))]
    return memref.CollapseShapeOp(kind, value, groups).result
