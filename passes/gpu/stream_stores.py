"""Owns the stores of results whose elements lie in registers of lanes."""

from __future__ import annotations

from magweld.bindings import ir, memref, vector
from magweld.passes.gpu.matrix_calls import vector_of
from magweld.passes.gpu.register_tiles import Along, Held, Place, Stored
from magweld.passes.gpu.structure import element_bytes


def store(held: Held, part: Stored) -> None:
    """Build the stores of a tile, neighbours of a lane at once where they may be."""
    columns = [n for n, one in enumerate(held.along) if one is Along.COLUMNS]
    width = part.lanes.layout.width
    strides, _ = ir.MemRefType(part.memory.type).get_strides_and_offset()
    together = [part.distance(n) for n in columns] == [1] and all(
        stride % width == 0 for stride in strides if stride != 1
    )
    for key, value in held.values.items():
        number = key[columns[0]].number if columns else 0
        if not together:
            memref.StoreOp(value, part.memory, part.indices(key))
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
