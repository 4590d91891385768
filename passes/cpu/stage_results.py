"""Owns stage-results: tiles of results that go past the caches are complete first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import func, ir, memref
from magweld.dialects.tile_graph import NONTEMPORAL, NONTEMPORAL_STORES
from magweld.passes.cpu.generic_forms import has_reduction, maps_of
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import ValueMap, clone_mapped
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.utils import add_remark, operations_of

_GENERIC = "linalg.generic"
_FUNCTION = "func.func"


@dataclass(frozen=True)
class StageResults(Pass):
    """Write each tile of a result that goes past the caches once, by whole vectors.

    `tile_graph.nontemporal` of a kernel names such results. What one element-wise
    operation writes, and nobody reads, it stores past the caches:
    `tile_graph.nontemporal_stores` has the numbers of its outputs that are. Any other
    tile has a buffer, the place that its plan gives it: to read what is past the
    caches, or to write it again, would wait for memory. What one element-wise operation
    writes it writes to both; else the buffer is copied behind what writes it last.

        for each tile t:                      for each tile t:
            s = sum[t]                            s = sum[t]
            s = x[t] + y[t]                       b, s = x[t] + y[t] {nontemporal [1]}
            m = mean(s)                =>         m = mean(b)
            n = norm[t]                           n = norm[t]
            n = f(s, m)                           n = f(b, m) {nontemporal [0]}

    A result whose tiles are no plain views of it, one for each loop over tiles, is
    stored as others are; a remark says so.
    """

    name: ClassVar[str] = "stage-results"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the kernels of the module, whose last arguments are their results."""
        for function in kernels_of(module):
            if NONTEMPORAL not in function.attributes:
                continue
            _drop_copies_to_themselves(function)
            count = len(function.type.results)
            results = list(function.entry_block.arguments)[-count:]
            for number in function.attributes[NONTEMPORAL]:
                _stage(function, results[number.value])


def _drop_copies_to_themselves(function: func.FuncOp) -> None:
    """Drop what bufferisation leaves where a result is written in its place."""
    for op in operations_of(function, memref.CopyOp):
        if op.source == op.target:
            op.operation.erase()


def _stage(function: func.FuncOp, result: ir.Value) -> None:
    tiles = _tiles(result)
    if tiles is None:
        text = "its tiles are no plain views, one for each loop over tiles"
        add_remark(function, f"a result is not stored past the caches: {text}")
        return
    for tile in tiles:
        writers = list(dict.fromkeys(_writers(tile)))
        is_alone = len(writers) == 1 and _writes_once(writers[0])
        if is_alone and len(list(tile.result.uses)) == 1:
            _mark(writers[0], 0)
            continue
        buffer = _buffer_beside(tile)
        if is_alone:
            _write_to_both(writers[0], tile)
        else:
            _copy_behind(tile, writers, buffer)


def _tiles(result: ir.Value) -> list[memref.SubViewOp] | None:
    """Return the views of a result that tiles are, None if there are others.

    That a kernel returns its result is no use of it.
    """
    tiles: list[memref.SubViewOp] = []
    for use in result.uses:
        user = use.owner
        if isinstance(user, func.ReturnOp):
            continue
        if not isinstance(user, memref.SubViewOp) or not _has_plain_users(user):
            return None
        if any(_are_nested(user, tile) or _are_nested(tile, user) for tile in tiles):
            return None
        tiles.append(user)
    return tiles


def _are_nested(outer: memref.SubViewOp, inner: memref.SubViewOp) -> bool:
    """Whether a view is in the block of another one, or in a loop there."""
    op = inner.operation
    while op.name != _FUNCTION:
        if op.block == outer.operation.block:
            return True
        op = op.parent.operation
    return False


def _has_plain_users(tile: memref.SubViewOp) -> bool:
    """Whether operations of the block of a tile read and write all of it.

    The first of them writes it, and reads nothing of it that was there before.
    """
    users = [use.owner.operation for use in tile.result.uses]
    if not _writers(tile) or any(
        user.name != _GENERIC or user.block != tile.operation.block for user in users
    ):
        return False
    block = [op.operation for op in tile.operation.block.operations]
    first = min(users, key=block.index)
    arguments = first.regions[0].blocks[0].arguments
    places = [n for n, operand in enumerate(first.operands) if operand == tile.result]
    return all(
        place >= _inputs(first) and not list(arguments[place].uses) for place in places
    )


def _writers(tile: memref.SubViewOp) -> list[ir.Operation]:
    """Return the operations that write a tile, in no order."""
    found = [
        (use.owner.operation, use.operand_number)
        for use in tile.result.uses
        if use.owner.operation.name == _GENERIC
    ]
    return [op for op, position in found if position >= _inputs(op)]


def _inputs(op: ir.Operation) -> int:
    return int(op.attributes["operandSegmentSizes"][0])


def _writes_once(op: ir.Operation) -> bool:
    """Whether an operation writes its last operand alone, and reads it nowhere."""
    output = op.operands[len(op.operands) - 1]
    argument = list(op.regions[0].blocks[0].arguments)[-1]
    is_only = len(op.operands) == _inputs(op) + 1
    is_read = output in list(op.operands)[:-1] or bool(list(argument.uses))
    return is_only and not has_reduction(op) and not is_read


def _mark(op: ir.Operation, output: int) -> None:
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), output)
    op.attributes[NONTEMPORAL_STORES] = ir.ArrayAttr.get([number])


def _buffer_beside(tile: memref.SubViewOp) -> ir.Value:
    """Give a tile a buffer, which all that uses the tile uses instead."""
    kind = ir.MemRefType.get(tile.result.type.shape, tile.result.type.element_type)
    block = [op.operation for op in tile.operation.block.operations]
    behind = block[block.index(tile.operation) + 1]
    with ir.InsertionPoint(behind), tile.location:
        buffer = memref.AllocOp(kind, [], []).result
    tile.result.replace_all_uses_with(buffer)
    return buffer


def _write_to_both(op: ir.Operation, tile: memref.SubViewOp) -> None:
    """Let an operation write a tile as well, past the caches."""
    operands, maps = list(op.operands), maps_of(op)
    block = op.regions[0].blocks[0]
    *operations, terminator = block.operations

    def body(arguments: Sequence[ir.Value]) -> list[ir.Value]:
        values = ValueMap()
        for old, new in zip(block.arguments, arguments, strict=False):
            values[old] = new
        for inner in operations:
            clone_mapped(inner, values)
        return [values[terminator.operands[0]]] * 2

    with ir.InsertionPoint(op), op.location:
        outputs = [operands[-1], tile.result]
        both = build_generic(operands[:-1], outputs, [*maps, maps[-1]], body)
    _mark(both.operation, 1)
    op.erase()


def _copy_behind(
    tile: memref.SubViewOp, writers: Sequence[ir.Operation], buffer: ir.Value
) -> None:
    """Copy the buffer of a tile behind the last operation that writes it."""
    block = [op.operation for op in tile.operation.block.operations]
    last = max(map(block.index, writers))
    maps = [ir.AffineMap.get_identity(buffer.type.rank)] * 2
    with ir.InsertionPoint(block[last + 1]), tile.location:
        copy = build_generic([buffer], [tile.result], maps, lambda values: values[:1])
    _mark(copy.operation, 0)
