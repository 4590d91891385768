"""Owns the stores of results whose elements lie in registers of lanes."""

from __future__ import annotations

from typing import Any

from magweld.bindings import affine, arith, ir, memref, vector
from magweld.passes.gpu.matrix_calls import vector_of
from magweld.passes.gpu.register_tiles import Along, Held, Place, Stored
from magweld.passes.gpu.stream_rings import only_if
from magweld.passes.gpu.structure import element_bytes


def store(held: Held, part: Stored, first: tuple[int, Any] | None = None) -> None:
    """Build the stores of a tile, neighbours of a lane at once where they may be.

    Args:
        held: The tile.
        part: Where it goes.
        first: A dimension of the tensor that goes along the rows, and the index in
            front of which another tile stores; None where there is no such tile.
    """
    rows: dict[tuple[Place, ...], list[tuple[Place, ...]]] = {}
    for key in held.values:
        row = tuple(place for place in key if place.along is Along.ROWS)
        rows.setdefault(row, []).append(key)
    for keys in rows.values():
        if first is None:
            _store_row(held, keys, part)
            continue
        dim, start = first
        index = part.indices(keys[0])[dim]
        with only_if(arith.CmpIOp(arith.CmpIPredicate.sge, index, start).result):
            _store_row(held, keys, part)


def stored_before(op: Any) -> tuple[int, Any] | None:
    """Return the dimension of a slice whose tiles overlap, and where others end.

    That is where the tile would begin: it is not so far from the end.
    """
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = iter(op.offsets)
    for dim, offset in enumerate(op.static_offsets):
        value = next(dynamic) if offset == marker else None
        if value is None or isinstance(value, ir.BlockArgument):
            continue
        if isinstance(value.owner.opview, affine.AffineMinOp):
            return dim, value.owner.operands[0]
    return None


def _store_row(held: Held, keys: list[tuple[Place, ...]], part: Stored) -> None:
    columns = [n for n, one in enumerate(held.along) if one is Along.COLUMNS]
    width = part.lanes.layout.width
    strides, _ = ir.MemRefType(part.memory.type).get_strides_and_offset()
    together = [part.distance(n) for n in columns] == [1] and all(
        stride % width == 0 for stride in strides if stride != 1
    )
    for key in keys:
        number = key[columns[0]].number if columns else 0
        if not together:
            memref.StoreOp(held.values[key], part.memory, part.indices(key))
        elif number % width == 0:
            _store_neighbours(held, key, columns[0], part)


def _store_neighbours(
    held: Held, key: tuple[Place, ...], column: int, part: Stored
) -> None:
    width = part.lanes.layout.width
    keys = [
        tuple(
            Place(p.along, p.number + n) if dim == column else p
            for dim, p in enumerate(key)
        )
        for n in range(width)
    ]
    values = vector_of([held.values[one] for one in keys])
    size = width * element_bytes(part.memory.type.element_type)
    vector.StoreOp(values, part.memory, part.indices(key), alignment=size)
