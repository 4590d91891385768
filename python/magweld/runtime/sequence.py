"""Owns the native code that runs kernels: one after another, in loops, as tests say.

A call from Python to native code costs 0.15 µs and a release of the interpreter
lock; a program of many small kernels pays it once for each run of them, and a loop
once for all iterations, also where a truth value ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial

from llvmlite import binding, ir

from magweld.runtime.address_writer import define_writer
from magweld.runtime.control_code import DONE, INSTRUCTION_WORDS, Opcode

SEQUENCE_SYMBOL = "magweld_run_sequence"
LOOP_SYMBOL = "magweld_run_loop"
CONTROL_SYMBOL = "magweld_run_control"

_POINTER, _WORD, _VOID = ir.PointerType(), ir.IntType(64), ir.VoidType()
# Words of a move: the entry that is set, the entry that is read, what is added.
MOVE_WORDS = 3


@cache
def sequence_object() -> bytes:
    """Return host object code of the three symbols of this module, and of the writer.

    The first is `void f(void (**launches)(int64_t*), int64_t count, int64_t* table)`
    and calls each of the `count` launches with the table, in order. The second has
    `int64_t trips, int64_t (*moves)[3], int64_t move_count` in addition: it does so
    `trips` times, and after each time `table[to] = table[from] + add` for every move
    `{to, from, add}`, in order.

    The third is `int64_t f(int64_t (*code)[4], int64_t place, int64_t jumps,
    int64_t memmove)`, the last being the address of C's function. It carries out the
    instructions of `Opcode` from a place on. It returns `DONE` at the end, a place to
    go on from when it has gone back `jumps` times, and `DONE - 1 - place` at a `PYTHON`
    instruction.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(opt=2, reloc="pic", jit=True)
    module = binding.parse_assembly(str(_module(binding.get_process_triple())))
    return bytes(machine.emit_object(module))


def _module(triple: str) -> ir.Module:
    module = ir.Module(name="sequence")
    module.triple = triple
    run = [_POINTER, _WORD, _POINTER]
    function = ir.Function(module, ir.FunctionType(_VOID, run), SEQUENCE_SYMBOL)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _emit_launches(builder, *function.args)
    builder.ret_void()
    loop = ir.FunctionType(_VOID, [*run, _WORD, _POINTER, _WORD])
    function = ir.Function(module, loop, LOOP_SYMBOL)
    launches, count, table, trips, moves, move_count = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    with _counted(builder, trips):
        _emit_launches(builder, launches, count, table)
        with _counted(builder, move_count) as index:
            _emit_move(builder, table, moves, index)
    builder.ret_void()
    kind = ir.FunctionType(_WORD, [_POINTER, _WORD, _WORD, _WORD])
    _emit_control(ir.Function(module, kind, CONTROL_SYMBOL))
    define_writer(module)
    return module


def _emit_control(function: ir.Function) -> None:
    code, first, budget, memmove = function.args
    begin, head = map(function.append_basic_block, ("begin", "head"))
    ir.IRBuilder(begin).branch(head)
    builder = ir.IRBuilder(head)
    place, jumps = builder.phi(_WORD), builder.phi(_WORD)
    start = builder.mul(place, ir.Constant(_WORD, INSTRUCTION_WORDS))
    words = [
        _load(
            builder,
            builder.gep(
                code,
                [builder.add(start, ir.Constant(_WORD, number))],
                source_etype=_WORD,
            ),
        )
        for number in range(INSTRUCTION_WORDS)
    ]
    after = builder.add(place, ir.Constant(_WORD, 1))
    incoming = [(first, budget, begin)]
    halt = function.append_basic_block("halt")
    switch = builder.switch(words[0], halt)
    ir.IRBuilder(halt).ret(ir.Constant(_WORD, DONE))
    emit_one = partial(_emit_instruction, words=words[1:], memmove=memmove)
    for opcode in Opcode:
        if opcode is Opcode.HALT:
            continue
        block = function.append_basic_block(opcode.name.lower())
        switch.add_case(ir.Constant(_WORD, opcode), block)
        builder = ir.IRBuilder(block)
        if opcode is Opcode.PYTHON:
            builder.ret(builder.sub(ir.Constant(_WORD, DONE - 1), place))
            continue
        left = jumps
        if opcode is Opcode.BACK:
            left = builder.sub(jumps, ir.Constant(_WORD, 1))
            over = builder.icmp_signed("<=", left, ir.Constant(_WORD, 0))
            with builder.if_then(over):
                builder.ret(words[1])
        onward = emit_one(builder, opcode, after)
        builder.branch(head)
        incoming.append((onward, left, builder.block))
    for value, count, block in incoming:
        place.add_incoming(value, block)
        jumps.add_incoming(count, block)


def _emit_instruction(
    builder: ir.IRBuilder,
    opcode: Opcode,
    after: ir.Value,
    *,
    words: list[ir.Value],
    memmove: ir.Value,
) -> ir.Value:
    """Emit what an instruction does; return the place of the next one."""
    a, b, c = words
    match opcode:
        case Opcode.JUMP | Opcode.BACK:
            return a
        case Opcode.UNLESS:
            tested = builder.inttoptr(_at(builder, b), _POINTER)
            byte = builder.load(tested, typ=ir.IntType(8))
            is_zero = builder.icmp_unsigned("==", byte, ir.Constant(ir.IntType(8), 0))
            return builder.select(is_zero, a, after)
        case Opcode.LAUNCH:
            launch = ir.FunctionType(_VOID, [_POINTER]).as_pointer()
            table = builder.inttoptr(b, _POINTER)
            builder.call(builder.inttoptr(a, launch), [table])
        case Opcode.SET:
            builder.store(_at(builder, b), builder.inttoptr(a, _POINTER))
        case Opcode.OTHER:
            one, other = _at(builder, b), _at(builder, c)
            same = builder.icmp_unsigned("==", _at(builder, a), one)
            chosen = builder.select(same, other, one)
            builder.store(chosen, builder.inttoptr(a, _POINTER))
        case Opcode.COPY:
            kind = ir.FunctionType(_POINTER, [_POINTER, _POINTER, _WORD]).as_pointer()
            target, source = _at(builder, a), _at(builder, b)
            with builder.if_then(builder.icmp_unsigned("!=", target, source)):
                pointers = [builder.inttoptr(x, _POINTER) for x in (target, source)]
                builder.call(builder.inttoptr(memmove, kind), [*pointers, c])
    return after


def _load(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    return builder.load(pointer, typ=_WORD)


def _at(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """Load the word at an address."""
    return _load(builder, builder.inttoptr(address, _POINTER))


def _emit_launches(
    builder: ir.IRBuilder, launches: ir.Value, count: ir.Value, table: ir.Value
) -> None:
    with _counted(builder, count) as index:
        slot = builder.gep(launches, [index], source_etype=_POINTER)
        launch_kind = ir.FunctionType(_VOID, [_POINTER])
        launch = builder.load(slot, typ=launch_kind.as_pointer())
        builder.call(launch, [table])


def _emit_move(
    builder: ir.IRBuilder, table: ir.Value, moves: ir.Value, index: ir.Value
) -> None:
    first = builder.mul(index, ir.Constant(_WORD, MOVE_WORDS))
    to, source, add = (
        builder.load(
            builder.gep(
                moves,
                [builder.add(first, ir.Constant(_WORD, word))],
                source_etype=_WORD,
            ),
            typ=_WORD,
        )
        for word in range(MOVE_WORDS)
    )
    address = builder.load(builder.gep(table, [source], source_etype=_WORD), typ=_WORD)
    slot = builder.gep(table, [to], source_etype=_WORD)
    builder.store(builder.add(address, add), slot)


@contextmanager
def _counted(builder: ir.IRBuilder, count: ir.Value) -> Iterator[ir.Value]:
    """Emit what is emitted inside as the body of a loop over 0 to `count`."""
    before = builder.block
    function = builder.function
    head, body, done = map(function.append_basic_block, ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(_WORD)
    index.add_incoming(ir.Constant(_WORD, 0), before)
    builder.cbranch(builder.icmp_unsigned("<", index, count), body, done)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, ir.Constant(_WORD, 1)), builder.block)
    builder.branch(head)
    builder.position_at_end(done)
