"""Owns stores past the caches: where they are possible, and what waits for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from magweld.bindings import arith, func, ir, llvm, memref
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_index import index_constant
from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.cpu.register_tile import NONE, RegisterTile
from magweld.passes.tiling.first_cache import LINE_BYTES

_SEQUENTIAL = 7  # llvm.AtomicOrdering.seq_cst


def past_caches(
    nest: LoopNest,
    tile: RegisterTile,
    operands: Sequence[Operand],
    which: Collection[int],
) -> list[Operand] | None:
    """Return the operands of a nest with outputs that are stored past the caches.

    None where what it stores there are no vectors of which whole lines are made one
    after another, if the outputs begin with a line.

    Args:
        nest: The nest.
        tile: How it is cut.
        operands: Of the nest.
        which: Numbers of the outputs.
    """
    if nest.reductions or tile.vector_dim == NONE:
        return None
    found = list(operands)
    for number in which:
        buffer = operands[len(nest.inputs) + number]
        if not isinstance(buffer, FlatBuffer):
            return None
        if not _is_of_lines(nest.outputs[number], nest, tile):
            return None
        found[len(nest.inputs) + number] = replace(buffer, nontemporal=True)
    return found


def _is_of_lines(access: Access, nest: LoopNest, tile: RegisterTile) -> bool:
    if access.bits < 8 or access.offset * access.bits % (LINE_BYTES * 8):
        return False
    along, width = tile.vector_dim, access.bits // 8
    if access.strides[along] != 1 or nest.extents[along] * width % LINE_BYTES:
        return False
    others = [s for d, s in enumerate(access.strides) if d != along]
    if any(stride * width % LINE_BYTES for stride in others):
        return False
    return tile.lanes * width == LINE_BYTES or tile.order[-1] == along


def emit_is_aligned(operands: Sequence[Operand]) -> ir.Value:
    """Emit whether all that is stored past the caches begins with a line."""
    addresses = [
        _address(buffer)
        for buffer in operands
        if isinstance(buffer, FlatBuffer) and buffer.nontemporal
    ]
    bits = addresses[0]
    for address in addresses[1:]:
        bits = arith.OrIOp(bits, address).result
    within = arith.AndIOp(bits, index_constant(LINE_BYTES - 1)).result
    zero = index_constant(0)
    return arith.CmpIOp(arith.CmpIPredicate.eq, within, zero).result


def _address(buffer: FlatBuffer) -> ir.Value:
    base = memref.ExtractAlignedPointerAsIndexOp(buffer.view).result
    width = index_constant(int(buffer.element.width) // 8)
    return arith.AddIOp(base, arith.MulIOp(buffer.start, width).result).result


def emit_fence(function: func.FuncOp) -> None:
    """Emit what makes stores past the caches precede all that follows a kernel.

    Processors do not order them with other stores: what tells another thread that the
    kernel is done could come first.
    """
    *_, terminator = function.entry_block.operations
    number = ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(terminator), function.location:
        llvm.FenceOp(ir.IntegerAttr.get(number, _SEQUENTIAL))
