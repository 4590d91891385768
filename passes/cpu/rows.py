"""Owns the loads of a linalg body from rows that values tell: what can be vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from magweld.bindings import ir

LOAD = "memref.load"
_INDEX = "linalg.index"


def row_loops(
    block: ir.Block, strides: Sequence[tuple[int, ...]]
) -> frozenset[int] | None:
    """Return the loops along which all loads of a body walk through rows.

    A load walks along a loop if that is its last index, neighbours are neighbours in
    memory, and no other index changes with the loop.

    Args:
        block: Body of a `linalg.generic` on buffers.
        strides: For each input, the elements that one step of each loop moves.

    Returns:
        One loop, none where the loads have no loop in common, None without loads.
    """
    loads = [op.operation for op in block.operations if op.operation.name == LOAD]
    if not loads:
        return None
    found = [_row_loop(load, strides) for load in loads]
    common = set(found)
    return frozenset(loop for loop in found if loop is not None and len(common) == 1)


def _row_loop(load: ir.Operation, strides: Sequence[tuple[int, ...]]) -> int | None:
    buffer, *indices = load.operands
    if not indices or isinstance(indices[-1].owner, ir.Block):
        return None
    last = indices[-1].owner.operation
    steps, _ = buffer.type.get_strides_and_offset()
    is_bool = buffer.type.element_type == ir.IntegerType.get_signless(1)
    if last.name != _INDEX or steps[-1] != 1 or is_bool:
        return None
    loop = int(last.attributes["dim"].value)
    block = load.block
    fixed = _fixed_values(loop, block, strides)
    inside = {*block.arguments, *_results(block)}
    return loop if all(v in fixed or v not in inside for v in indices[:-1]) else None


def _fixed_values(
    loop: int, block: ir.Block, strides: Sequence[tuple[int, ...]]
) -> set[ir.Value]:
    """Return the values of a body that stay the same along a loop."""
    arguments = zip(block.arguments, strides, strict=False)
    fixed = {value for value, steps in arguments if steps[loop] == 0}
    inside = {*block.arguments, *_results(block)}
    for op in (op.operation for op in block.operations):
        if op.name == _INDEX:
            stays = op.attributes["dim"].value != loop
        else:
            known = op.name.startswith("arith.")
            stays = known and all(v in fixed or v not in inside for v in op.operands)
        if stays:
            fixed.update(op.results)
    return fixed


def _results(block: ir.Block) -> Iterator[ir.Value]:
    for op in block.operations:
        yield from op.operation.results
