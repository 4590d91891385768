"""Owns the order that values force upon the operations of a tile graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from magweld.dialects.tile_graph import captured_values
from magweld.passes.analysis.graph_body import source_value
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.utils import located_error

_CONNECT = "tile_graph.connect"


def readers_by_place(block: Any) -> tuple[tuple[int, ...], ...]:
    """Return for each operation of a block the places of those that read its results.

    They are read through connects, which read nothing themselves.
    """
    operations = [op.operation for op in block.operations]
    places = {op: place for place, op in enumerate(operations)}
    readers: list[dict[int, None]] = [{} for _ in operations]
    for place, op in enumerate(operations):
        if op.name == _CONNECT:
            continue
        for value in _values_read(op):
            producer = defining_op(source_value(value))
            maker = None if producer is None else places.get(producer.operation)
            if maker is not None:
                readers[maker][place] = None
    return tuple(map(tuple, readers))


def comes_back(
    readers: Sequence[Collection[int]],
    unit_of: Callable[[int], Collection[int]],
    members: Collection[int],
) -> bool:
    """Whether what `members` make reaches one of them through operations outside.

    Such members cannot run as one: something has to run between them.

    Args:
        readers: For each operation of a block, the places of those that read it.
        unit_of: The operations that run together with one, itself among them. None of
            them is behind the last member, unless it is on its own.
        members: The operations that are to run as one.
    """
    inside, last = set(members), max(members)
    waiting = [r for member in inside for r in readers[member] if r not in inside]
    seen = set(waiting)
    while waiting:
        place = waiting.pop()
        if place > last:
            continue
        for together in unit_of(place):
            for reader in readers[together]:
                if reader in inside:
                    return True
                if reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
    return False


def sort_block(block: Any) -> None:
    """Move operations behind what they read; others keep their order.

    Raises:
        PassError: An operation reads, through others, what it makes.
    """
    operations = [op.operation for op in block.operations]
    terminator = operations.pop()
    own = set(operations)
    placed: set[Any] = set()
    for first in operations:
        waiting, opened = [first], set()
        while waiting:
            op = waiting[-1]
            missing = [made for made in _makers(op, own) if made not in placed]
            if missing and op in opened:
                raise located_error(op, "reads what has to run behind it")
            opened.add(op)
            waiting.extend(missing)
            if not missing:
                waiting.pop()
                if op not in placed:
                    op.move_before(terminator)
                    placed.add(op)


def _makers(op: Any, among: Collection[Any]) -> list[Any]:
    """The operations among some that make what `op` reads."""
    producers = [defining_op(value) for value in _values_read(op)]
    made = [p.operation for p in producers if p is not None and p.operation in among]
    return list(dict.fromkeys(made))


def _values_read(op: Any) -> list[Any]:
    return [*op.operands, *captured_values(op)]
