"""Owns vectorize: linalg operations with a register tile become vector code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from magweld.bindings import ir, scf
from magweld.dialects.tile_graph import NONTEMPORAL_STORES
from magweld.passes.cpu.buffer_roots import root_of, users_of_buffer
from magweld.passes.cpu.emit_body import Combiner, emit_body
from magweld.passes.cpu.emit_buffer import (
    FlatBuffer,
    Operand,
    flatten,
    flatten_together,
)
from magweld.passes.cpu.emit_factors import (
    emit_apart_rows,
    emit_pairs,
    emit_widened_rows,
    rows_of_halves,
)
from magweld.passes.cpu.emit_finish import Finish
from magweld.passes.cpu.emit_nest import NestEmitter
from magweld.passes.cpu.emit_next_block import has_room, next_block, next_block_of
from magweld.passes.cpu.emit_nontemporal import (
    emit_fence,
    emit_is_aligned,
    past_caches,
)
from magweld.passes.cpu.emit_pairs import emit_pair_products
from magweld.passes.cpu.emit_tile import Work
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.cpu.loop_nest import COMBINERS, Access, LoopNest
from magweld.passes.cpu.pair_nests import paired_nest
from magweld.passes.cpu.register_tile import (
    ATTRIBUTE,
    NONE,
    RegisterTile,
    VectorUnit,
)
from magweld.passes.cpu.sweeps import Sweep, sweeps_of
from magweld.passes.cpu.vector_unit_pass import VectorUnitPass


@dataclass(frozen=True)
class Vectorize(VectorUnitPass):
    """Replace bufferised linalg operations by loops around their register tiles.

    The parallel loops surround the tile; the reduction loops carry its accumulators
    as vectors. What `fuse-epilogues` joined is one nest. Operations without
    `magweld.registers` are left alone.

    What `tile_graph.nontemporal_stores` marks is there twice: once for results that
    begin with a line, whose vectors are stored past the caches, with a fence at the end
    of the kernel, and once for others.

    Attributes:
        vector_bits: Width of a vector register, for the copies of packed operands.
        vector_registers: Number of vector registers.
        bf16_pairs: Whether one instruction multiplies pairs of bf16.
    """

    name: ClassVar[str] = "vectorize"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the operations of all kernels of the module."""
        for function in kernels_of(module):
            sweeps = [s for s in sweeps_of(function) if ATTRIBUTE in s.root.attributes]
            past = [_vectorize(sweep, self.unit) for sweep in sweeps]
            if any(past):
                emit_fence(function)


def _vectorize(sweep: Sweep, unit: VectorUnit) -> bool:
    """Rewrite a sweep; return whether it stores past the caches."""
    op = sweep.root
    tile = RegisterTile.from_attribute(op.attributes[ATTRIBUTE])
    nest = sweep.nest().collapse(tile.dims)
    with ir.InsertionPoint(sweep.last), op.location:
        block = op.regions[0].blocks[0]
        operands = flatten_together(list(op.operands), nest.accesses, nest)
        work = Work(
            partial(emit_body, block),
            _combiners(block, nest),
            _first(sweep),
            _finish(sweep, nest),
        )
        if tile.pairs != NONE:
            operands[:2] = emit_pairs(operands[:2], nest, tile, unit)
            nest = paired_nest(nest, tile.pairs)
            work = replace(work, body=emit_pair_products)
        elif (number := rows_of_halves(nest, tile, operands)) != NONE:
            operands[number] = emit_widened_rows(operands[number], nest, number, unit)
        elif (number := tile.copied_input) != NONE:
            work = replace(work, ahead=next_block(operands[number], nest))
            operands[number] = emit_apart_rows(operands[number], nest, number, unit)
        elif not has_room(nest, tile, unit.bits):
            work = replace(work, ahead=next_block_of(nest, tile, operands))
        past = None
        if NONTEMPORAL_STORES in op.attributes and work.finish is None:
            which = {number.value for number in op.attributes[NONTEMPORAL_STORES]}
            past = past_caches(nest, tile, operands, which)
        if past is None:
            NestEmitter(nest, tile, operands, work, unit).emit()
        else:
            _emit_past_caches(past, NestEmitter(nest, tile, operands, work, unit))
    for member in sweep.operations:
        member.erase()
    _drop_unused(operands[-1])
    return past is not None


def _emit_past_caches(past: list[Operand], nest: NestEmitter) -> None:
    """Emit a nest that stores past the caches where its outputs begin with lines."""
    choice = scf.IfOp(emit_is_aligned(past), has_else=True)
    for block, operands in (
        (choice.then_block, past),
        (choice.else_block, nest.operands),
    ):
        with ir.InsertionPoint(block):
            NestEmitter(nest.nest, nest.tile, operands, nest.work, nest.unit).emit()
            scf.YieldOp([])


def _flattened(
    op: ir.Operation, accesses: Sequence[Access], nest: LoopNest
) -> list[Operand]:
    """Emit flat views of the operands of an operation, in the loops of a nest."""
    return [
        flatten(value, access, nest) if isinstance(value.type, ir.MemRefType) else value
        for value, access in zip(op.operands, accesses, strict=True)
    ]


def _first(sweep: Sweep) -> ir.Value | None:
    """Return the value that the results of a sweep begin with, if it gives one."""
    if sweep.fill is None:
        return None
    (terminator,) = sweep.fill.regions[0].blocks[0].operations
    return terminator.operation.operands[0]


def _finish(sweep: Sweep, nest: LoopNest) -> Finish | None:
    op = sweep.finish
    if op is None:
        return None
    count = int(op.attributes["operandSegmentSizes"][0])
    flat: list[Operand | None] = [*_flattened(op, nest.beside, nest)]
    place = list(op.operands).index(sweep.result)
    if isinstance(flat[place], FlatBuffer):
        _drop_unused(flat[place])
    flat[place] = None
    outputs = [buffer for buffer in flat[count:] if isinstance(buffer, FlatBuffer)]
    return Finish(
        block=op.regions[0].blocks[0],
        inputs=flat[:count],
        outputs=outputs,
        used=[access.used for access in nest.beside[:count]],
        keeps=_is_read_elsewhere(sweep),
    )


def _is_read_elsewhere(sweep: Sweep) -> bool:
    """Whether the result of the root is for others than what finishes it."""
    result, finish = sweep.result, sweep.finish
    assert finish is not None, "asked for sweeps that have one"
    if list(finish.operands).count(result) > 1:
        return False  # it is replaced in its place
    root = root_of(result)
    if root is None or isinstance(root.owner, ir.Block):
        return True
    members = set(sweep.operations)
    users = {op for op in users_of_buffer(root) if op.name != "memref.dealloc"}
    return not users <= members


def _drop_unused(operand: Operand | None) -> None:
    """Erase a flat view that nobody reads or writes, so that its buffer may go."""
    if isinstance(operand, FlatBuffer) and not list(operand.view.uses):
        metadata = operand.start.owner
        operand.view.owner.operation.erase()
        if not any(list(value.uses) for value in metadata.operation.results):
            metadata.operation.erase()


def _combiners(block: ir.Block, nest: LoopNest) -> list[Combiner]:
    if not all(nest.combiners):
        return []
    *_, terminator = block.operations
    return [
        Combiner(value.owner.operation, COMBINERS[name])
        for value, name in zip(terminator.operands, nest.combiners, strict=True)
    ]
