"""Owns the native code that runs consecutive kernels, once or in a loop, in one call.

A call from Python to native code costs 0.15 µs and a release of the interpreter
lock; a program of many small kernels pays it once for each run of them, and a loop
once for all iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from llvmlite import binding, ir

SEQUENCE_SYMBOL = "magweld_run_sequence"
LOOP_SYMBOL = "magweld_run_loop"

_POINTER, _WORD, _VOID = ir.PointerType(), ir.IntType(64), ir.VoidType()
# Words of a move: the entry that is set, the entry that is read, what is added.
MOVE_WORDS = 3


@cache
def sequence_object() -> bytes:
    """Return host object code of `SEQUENCE_SYMBOL` and `LOOP_SYMBOL`.

    The first is `void f(void (**launches)(int64_t*), int64_t count, int64_t* table)`
    and calls each of the `count` launches with the table, in order. The second has
    `int64_t trips, int64_t (*moves)[3], int64_t move_count` in addition: it does so
    `trips` times, and after each time `table[to] = table[from] + add` for every move
    `{to, from, add}`, in order.
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
    return module


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
