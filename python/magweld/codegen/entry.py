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
        count: Entry that leads to how many there are, 64 bits.
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


@dataclass(frozen=True)
class MoveCall:
    """Set entries of the table, in order."""

    moves: tuple[Move, ...]


@dataclass(frozen=True)
class OtherCall:
    """Set an entry to the other of two: `to = to == first ? second : first`."""

    to: int
    first: int
    second: int


@dataclass(frozen=True)
class CopyCall:
    """Copy bytes from where an entry leads to where another does."""

    target: int
    source: int
    nbytes: int


@dataclass(frozen=True)
class IfCall:
    """Make some calls or others, as the byte where an entry leads says.

    Attributes:
        test: The entry.
        on_true: What is called if the byte is not zero.
        on_false: What is called otherwise.
    """

    test: int
    on_true: tuple[Call, ...]
    on_false: tuple[Call, ...]


@dataclass(frozen=True)
class WhileCall:
    """Make calls as long as a byte is not zero.

    Attributes:
        first: Entry that leads to the byte before the first iteration.
        again: Entry that leads to it after each.
        body: What is called.
    """

    first: int
    again: int
    body: tuple[Call, ...]


Call = (
    LaunchCall
    | LoopCall
    | CheckCall
    | MoveCall
    | OtherCall
    | CopyCall
    | IfCall
    | WhileCall
)


def entry_module(symbol: str, calls: Sequence[Call]) -> str:
    """Return LLVM IR text of `int64_t symbol(void** table)`, which makes some calls.

    It returns 0, or the `failure` of the first check that fails.
    """
    module = ir.Module(name="entry")
    function = ir.Function(module, ir.FunctionType(_WORD, [_POINTER]), symbol)
    emitter = _Emitter(ir.IRBuilder(function.append_basic_block("entry")))
    emitter.emit(calls)
    emitter.builder.ret(ir.Constant(_WORD, 0))
    return str(module)


@dataclass(frozen=True)
class _Emitter:
    builder: ir.IRBuilder

    @property
    def _function(self) -> ir.Function:
        return self.builder.function

    def emit(self, calls: Sequence[Call]) -> None:
        for call in calls:
            self._emit(call)

    def _emit(self, call: Call) -> None:
        match call:
            case LaunchCall():
                self.launch(call)
            case LoopCall():
                self.loop(call)
            case CheckCall():
                self.check(call)
            case MoveCall():
                self._moves(call.moves)
            case OtherCall():
                self.other(call)
            case CopyCall():
                self.copy(call)
            case IfCall():
                self.branch(call)
            case WhileCall():
                self.repeat(call)

    def launch(self, call: LaunchCall) -> None:
        kind = ir.FunctionType(ir.VoidType(), [_POINTER])
        launch = self._declared(call.symbol, kind)
        self.builder.call(launch, [self._slot(call.base)])

    def loop(self, call: LoopCall) -> None:
        self._moves(call.before)
        with self._counted(ir.Constant(_WORD, call.trips)):
            for launch in call.calls:
                self.launch(launch)
            self._moves(call.after_each)

    def check(self, check: CheckCall) -> None:
        builder, kind = self.builder, ir.IntType(check.bits)
        source, target = self._load(check.source), self._load(check.target)
        count = builder.load(self._load(check.count), typ=_WORD)
        some = builder.icmp_unsigned("!=", count, ir.Constant(_WORD, 0))
        with builder.if_then(some):
            before = builder.block
            with self._counted(count) as (index, body):
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

    def other(self, call: OtherCall) -> None:
        builder = self.builder
        first, second = self._load(call.first), self._load(call.second)
        is_first = builder.icmp_unsigned("==", self._load(call.to), first)
        builder.store(builder.select(is_first, second, first), self._slot(call.to))

    def copy(self, call: CopyCall) -> None:
        # The two may be one place.
        kind = ir.FunctionType(_POINTER, [_POINTER, _POINTER, _WORD])
        memmove = self._declared("memmove", kind)
        target, source = self._load(call.target), self._load(call.source)
        self.builder.call(memmove, [target, source, ir.Constant(_WORD, call.nbytes)])

    def branch(self, call: IfCall) -> None:
        with self.builder.if_else(self._truth(call.test)) as (on_true, on_false):
            with on_true:
                self.emit(call.on_true)
            with on_false:
                self.emit(call.on_false)

    def repeat(self, call: WhileCall) -> None:
        builder = self.builder
        body, done = map(self._function.append_basic_block, ("again", "done"))
        builder.cbranch(self._truth(call.first), body, done)
        builder.position_at_end(body)
        self.emit(call.body)
        builder.cbranch(self._truth(call.again), body, done)
        builder.position_at_end(done)

    def _truth(self, entry: int) -> ir.Instruction:
        byte = ir.IntType(8)
        value = self.builder.load(self._load(entry), typ=byte)
        return self.builder.icmp_unsigned("!=", value, ir.Constant(byte, 0))

    def _declared(self, symbol: str, kind: ir.FunctionType) -> ir.Function:
        module = self.builder.module
        found = module.globals.get(symbol)
        return ir.Function(module, kind, symbol) if found is None else found

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
    def _counted(self, count: ir.Value) -> Iterator[tuple[ir.Instruction, ir.Block]]:
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
        more = builder.icmp_unsigned("<", after, count)
        builder.cbranch(more, body, done)
        builder.position_at_end(done)
