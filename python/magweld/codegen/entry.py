"""Owns the entry function of portable code: all steps of a program in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

_POINTER, _WORD = ir.PointerType(), ir.IntType(64)


@dataclass(frozen=True)
class LaunchCall:
    """Call `symbol(table + base)`; bases count entries of the table."""

    symbol: str
    base: int


@dataclass(frozen=True)
class Move:
    """Set an entry of the table: `table[to] = table[source] + add` bytes."""

    to: int
    source: int
    add: int


@dataclass(frozen=True)
class LoopCall:
    """Call launches several times, with moves before all and after each time."""

    calls: tuple[LaunchCall, ...]
    trips: int
    before: tuple[Move, ...]
    after_each: tuple[Move, ...]


@dataclass(frozen=True)
class CheckCall:
    """Copy indices; the entry function returns `failure` if one is out of range.

    Attributes:
        source: Entry with the indices.
        target: Entry of the copy, which kernels read.
        count: How many there are.
        bits: Bits of each: 32 or 64.
        lowest: The least index that is in range.
        end: The first one above the range.
        failure: What is returned; not 0.
    """

    source: int
    target: int
    count: int
    bits: int
    lowest: int
    end: int
    failure: int


Call = LaunchCall | LoopCall | CheckCall


def entry_module(symbol: str, calls: Sequence[Call]) -> str:
    """Return LLVM IR text of `int64_t symbol(void** table)`, which makes some calls.

    It returns 0, or the `failure` of the first check that fails.
    """
    module = ir.Module(name="entry")
    function = ir.Function(module, ir.FunctionType(_WORD, [_POINTER]), symbol)
    emitter = _Emitter(ir.IRBuilder(function.append_basic_block("entry")))
    for call in calls:
        match call:
            case LaunchCall():
                emitter.launch(call)
            case LoopCall():
                emitter.loop(call)
            case CheckCall():
                emitter.check(call)
    emitter.builder.ret(ir.Constant(_WORD, 0))
    return str(module)


@dataclass(frozen=True)
class _Emitter:
    builder: ir.IRBuilder

    @property
    def _function(self) -> ir.Function:
        return self.builder.function

    def launch(self, call: LaunchCall) -> None:
        module = self.builder.module
        launch = module.globals.get(call.symbol)
        if launch is None:
            kind = ir.FunctionType(ir.VoidType(), [_POINTER])
            launch = ir.Function(module, kind, call.symbol)
        self.builder.call(launch, [self._slot(call.base)])

    def loop(self, call: LoopCall) -> None:
        self._moves(call.before)
        with self._counted(call.trips):
            for launch in call.calls:
                self.launch(launch)
            self._moves(call.after_each)

    def check(self, check: CheckCall) -> None:
        builder, kind = self.builder, ir.IntType(check.bits)
        source, target = self._load(check.source), self._load(check.target)
        before = builder.block
        with self._counted(check.count) as (index, body):
            wrong = builder.phi(ir.IntType(1))
            value = builder.load(
                builder.gep(source, [index], source_etype=kind), typ=kind
            )
            builder.store(value, builder.gep(target, [index], source_etype=kind))
            wide = builder.sext(value, _WORD) if check.bits < 64 else value
            low = builder.icmp_signed("<", wide, ir.Constant(_WORD, check.lowest))
            high = builder.icmp_signed(">=", wide, ir.Constant(_WORD, check.end))
            found = builder.or_(wrong, builder.or_(low, high))
            wrong.add_incoming(ir.Constant(ir.IntType(1), 0), before)
            wrong.add_incoming(found, body)
        with builder.if_then(found, likely=False):
            builder.ret(ir.Constant(_WORD, check.failure))

    def _moves(self, moves: Sequence[Move]) -> None:
        for move in moves:
            builder = self.builder
            source = self._load(move.source)
            moved = builder.gep(
                source, [ir.Constant(_WORD, move.add)], source_etype=ir.IntType(8)
            )
            builder.store(moved, self._slot(move.to))

    def _slot(self, entry: int) -> ir.Instruction:
        place = [ir.Constant(_WORD, entry)]
        return self.builder.gep(self._function.args[0], place, source_etype=_POINTER)

    def _load(self, entry: int) -> ir.Instruction:
        return self.builder.load(self._slot(entry), typ=_POINTER)

    @contextmanager
    def _counted(self, count: int) -> Iterator[tuple[ir.Instruction, ir.Block]]:
        """Emit what is emitted inside as the body of a loop of at least one turn."""
        builder = self.builder
        before = builder.block
        body, done = map(self._function.append_basic_block, ("body", "done"))
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(_WORD)
        index.add_incoming(ir.Constant(_WORD, 0), before)
        yield index, body
        after = builder.add(index, ir.Constant(_WORD, 1))
        index.add_incoming(after, body)
        more = builder.icmp_unsigned("<", after, ir.Constant(_WORD, count))
        builder.cbranch(more, body, done)
        builder.position_at_end(done)
