"""Owns the calls of a kernel for what a launch takes: of one member, or of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

POINTER = ir.PointerType()
WORD = ir.IntType(64)


@dataclass(frozen=True)
class MemberLoop:
    """A loop over the members of a batch that have tiles in a range.

    A member `m` has the tiles from `m * tiles`; its kernel takes numbers from zero.

    Attributes:
        name: Prefix of what it defines.
        entries: For each pointer of the kernel its index in the table of addresses;
            those of one member after another.
        shifts: For each entry at which byte of it the kernel begins; none for zeros.
        tiles: How many tiles a member has.
        pointers: How many pointers a member takes.
    """

    name: str
    entries: Sequence[int]
    shifts: Sequence[int]
    tiles: int
    pointers: int

    def emit(
        self, builder: ir.IRBuilder, kernel: ir.Function, bounds: Sequence[ir.Value]
    ) -> None:
        """Emit the loop behind what a builder has; it stands behind the loop then."""
        entries = _table(builder.module, f"{self.name}_entries", self.entries)
        shifts = None
        if self.shifts:
            shifts = _table(builder.module, f"{self.name}_shifts", self.shifts)
        low, high = bounds
        tiles = ir.Constant(WORD, self.tiles)
        before = builder.block
        first = builder.udiv(low, tiles)
        head, body, done = map(
            builder.function.append_basic_block, ("head", "body", "done")
        )
        builder.branch(head)
        builder.position_at_end(head)
        member = builder.phi(WORD)
        member.add_incoming(first, before)
        start = builder.mul(member, tiles)
        builder.cbranch(builder.icmp_unsigned("<", start, high), body, done)
        builder.position_at_end(body)
        begin = builder.select(
            builder.icmp_unsigned("<", start, low),
            builder.sub(low, start),
            ir.Constant(WORD, 0),
        )
        rest = builder.sub(high, start)
        end = builder.select(builder.icmp_unsigned("<", rest, tiles), rest, tiles)
        row = builder.mul(member, ir.Constant(WORD, self.pointers))
        pointers = []
        for number in range(self.pointers):
            place = builder.add(row, ir.Constant(WORD, number))
            pointer = load_pointer(builder, _element(builder, entries, place))
            if shifts is not None:
                pointer = shifted(builder, pointer, _element(builder, shifts, place))
            pointers.append(pointer)
        builder.call(kernel, [*pointers, begin, end])
        member.add_incoming(builder.add(member, ir.Constant(WORD, 1)), builder.block)
        builder.branch(head)
        builder.position_at_end(done)


def load_pointer(builder: ir.IRBuilder, entry: ir.Value) -> ir.Instruction:
    """Load an entry of the table of addresses."""
    table = builder.function.args[0]
    return builder.load(builder.gep(table, [entry], source_etype=POINTER), typ=POINTER)


def shifted(
    builder: ir.IRBuilder, pointer: ir.Value, shift: ir.Value
) -> ir.Instruction:
    """Move an address by some bytes."""
    return builder.gep(pointer, [shift], source_etype=ir.IntType(8))


def _table(module: ir.Module, name: str, words: Sequence[int]) -> ir.GlobalVariable:
    """Define constant words, those of one member after another."""
    kind = ir.ArrayType(WORD, len(words))
    table = ir.GlobalVariable(module, kind, name)
    table.linkage = "internal"
    table.global_constant = True
    table.initializer = ir.Constant(kind, list(words))
    return table


def _element(
    builder: ir.IRBuilder, table: ir.GlobalVariable, place: ir.Value
) -> ir.Instruction:
    """Load a word of a constant table."""
    slot = builder.gep(table, [place], source_etype=WORD)
    return builder.load(slot, typ=WORD)
