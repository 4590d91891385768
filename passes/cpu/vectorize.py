"""Owns vectorize: linalg operations with a register tile become vector code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from magweld.bindings import ir
from magweld.passes.base import Pass
from magweld.passes.cpu.emit_body import Combiner, emit_body
from magweld.passes.cpu.emit_buffer import flatten
from magweld.passes.cpu.emit_nest import NestEmitter
from magweld.passes.cpu.kernels import generics_of
from magweld.passes.cpu.loop_nest import COMBINERS, LoopNest, read_loop_nest
from magweld.passes.cpu.register_tile import ATTRIBUTE, RegisterTile


@dataclass(frozen=True)
class Vectorize(Pass):
    """Replace bufferised linalg operations by loops around their register tiles.

    The parallel loops surround the tile; the reduction loops carry its accumulators
    as vectors. Operations without `magweld.registers` are left alone.
    """

    name: ClassVar[str] = "vectorize"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the operations of all kernels of the module."""
        for _, op in generics_of(module):
            if ATTRIBUTE in op.attributes:
                _vectorize(op)


def _vectorize(op: ir.Operation) -> None:
    tile = RegisterTile.from_attribute(op.attributes[ATTRIBUTE])
    nest = read_loop_nest(op).collapse(tile.dims)
    with ir.InsertionPoint(op), op.location:
        emitter_for(op, nest, tile).emit()
    op.erase()


def emitter_for(op: ir.Operation, nest: LoopNest, tile: RegisterTile) -> NestEmitter:
    """Return the emitter of a `linalg.generic`, its buffers flattened here."""
    block = op.regions[0].blocks[0]
    operands = [
        flatten(value, access, nest) if isinstance(value.type, ir.MemRefType) else value
        for value, access in zip(op.operands, nest.accesses, strict=True)
    ]
    return NestEmitter(
        nest, tile, operands, partial(emit_body, block), _combiners(block, nest)
    )


def _combiners(block: ir.Block, nest: LoopNest) -> list[Combiner]:
    if not all(nest.combiners):
        return []
    *_, terminator = block.operations
    return [
        Combiner(value.owner.operation, COMBINERS[name])
        for value, name in zip(terminator.operands, nest.combiners, strict=True)
    ]
