"""Owns the native loop that runs consecutive kernels in one call.

A call from Python to native code costs 0.15 µs and a release of the interpreter
lock; a program of many small kernels pays it once for each run of them.
"""

from __future__ import annotations

from functools import cache

from llvmlite import binding, ir

SEQUENCE_SYMBOL = "magweld_run_sequence"


@cache
def sequence_object() -> bytes:
    """Return host object code of `SEQUENCE_SYMBOL`.

    It is `void f(void (**launches)(int64_t*), int64_t count, int64_t* table)` and
    calls each of the `count` launches with the table, in order.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(opt=2, reloc="pic", jit=True)
    module = binding.parse_assembly(str(_module(binding.get_process_triple())))
    return bytes(machine.emit_object(module))


def _module(triple: str) -> ir.Module:
    pointer, word, void = ir.PointerType(), ir.IntType(64), ir.VoidType()
    module = ir.Module(name="sequence")
    module.triple = triple
    kind = ir.FunctionType(void, [pointer, word, pointer])
    function = ir.Function(module, kind, SEQUENCE_SYMBOL)
    launches, count, table = function.args
    entry, head, body, done = map(
        function.append_basic_block, ("entry", "head", "body", "done")
    )
    builder = ir.IRBuilder(entry)
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(word)
    index.add_incoming(ir.Constant(word, 0), entry)
    builder.cbranch(builder.icmp_unsigned("<", index, count), body, done)
    builder.position_at_end(body)
    slot = builder.gep(launches, [index], source_etype=pointer)
    launch_kind = ir.FunctionType(void, [pointer])
    launch = builder.load(slot, typ=launch_kind.as_pointer())
    builder.call(launch, [table])
    index.add_incoming(builder.add(index, ir.Constant(word, 1)), body)
    builder.branch(head)
    builder.position_at_end(done)
    builder.ret_void()
    return module
