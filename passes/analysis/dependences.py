"""Owns the order that values force upon the operations of a tile graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from magweld.dialects.tile_graph import captured_values
from magweld.passes.analysis.cloning import defining_op
from magweld.passes.analysis.graph_body import source_value
from magweld.passes.ir_utils import located_error

_CONNECT = "tile_graph.connect"


def readers_by_operation(block: Any) -> dict[Any, set[Any]]:
    """Return which operations of a block read each one's results, through connects."""
    operations = [op.operation for op in block.operations]
    readers: dict[Any, set[Any]] = {op: set() for op in operations}
    for op in operations:
        if op.name == _CONNECT:
            continue
        for value in _values_read(op):
            producer = defining_op(source_value(value))
            if producer is not None and producer.operation in readers:
                readers[producer.operation].add(op)
    return readers


def comes_back(
    readers: Mapping[Any, Collection[Any]],
    units: Mapping[Any, Collection[Any]],
    members: Collection[Any],
) -> bool:
    """Whether what `members` make reaches one of them through operations outside.

    Such members cannot run as one: something has to run between them.

    Args:
        readers: For each operation, those that read its results.
        units: The operations that run together with an operation, where there are
            any.
        members: The operations that are to run as one.
    """
    inside = set(members)
    waiting = [r for member in inside for r in readers[member] if r not in inside]
    seen = set(waiting)
    while waiting:
        op = waiting.pop()
        for together in units.get(op, (op,)):
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
