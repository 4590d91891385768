"""Owns the native code of a call: addresses of tensors, new tensors, runs of code.

Torch's interface for C makes tensors and gives addresses; one function beside it gives
a new tensor its object in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from llvmlite import ir

from magweld.codegen.call_words import HEAD, RESULT_HEAD, Kind, Run
from magweld.codegen.emitter import POINTER, VOID, WORD, Emitter
from magweld.codegen.python_functions import call, call_at, give

NAME: Final = "start_call"
_STATUS: Final = ir.IntType(32)
_NULL: Final = ir.Constant(POINTER, None)


class TorchCalls(NamedTuple):
    """What native code calls of torch, as addresses, and what it has to know.

    Attributes:
        holder: At which byte of a Python tensor C++ holds it.
        address_of: Gives the address of a tensor.
        empty: Makes a tensor without values.
        wrap: Gives a tensor its object in Python, and takes it from who holds it.
        release: Lets go of what holds a tensor.
        device: The number of the kind of device.
    """

    holder: int
    address_of: int
    empty: int
    wrap: int
    release: int
    device: int


def define_call(module: ir.Module, torch: TorchCalls) -> None:
    """Define the function, which takes a list of arguments and gives one of results.

    It gives `None` where torch refuses something or a check fails: what has run then
    has written to the table and to memory that nobody else sees.
    """
    kind = ir.FunctionType(POINTER, [POINTER, POINTER])
    _Call(ir.Function(module, kind, NAME), torch).emit()


class _Call:
    def __init__(self, function: ir.Function, torch: TorchCalls) -> None:
        self._code = Emitter(function, 1)
        self._torch = torch
        self._none = function.append_basic_block("none")
        # What is given back: 0, or a list of results.
        self._results = self._code.variable(_NULL)
        # What holds memory that there is only in the call: 0, or a tensor.
        self._memory = self._code.variable(_NULL)

    def emit(self) -> None:
        """Emit the body."""
        code, builder = self._code, self._code.builder
        held, arguments = code.arguments
        data = call(builder, "PyBytes_AsString", POINTER, [held])
        words = [code.load_word(data, number) for number in range(HEAD)]
        address, entries, runs, given, made, parts, copied, dtype, floats = words
        table = builder.inttoptr(address, POINTER)
        size = call(builder, "PyList_Size", WORD, [arguments])
        code.require(builder.icmp_unsigned("==", size, given), self._none)
        with code.loop(0, given) as index:
            item = call(builder, "PyList_GetItem", POINTER, [arguments, index])
            place = code.load_word(data, code.sum(index, HEAD))
            code.require(self._is_written(item, table, place), self._none)
        rest = self._make_results(
            made, code.word_at(data, code.sum(given, HEAD)), table
        )
        start = self._make_memory(dtype, floats)
        with code.loop(0, parts) as index:
            place, behind = self._pair(rest, index)
            builder.store(code.sum(start, behind), code.word_at(table, place))
        rest = code.word_at(rest, code.product(parts, 2))
        with code.loop(0, copied) as index:
            source, target = self._pair(rest, index)
            builder.store(code.load_word(table, source), code.word_at(table, target))
        with builder.if_then(builder.icmp_unsigned("!=", runs, code.word(0))):
            memory = builder.inttoptr(start, POINTER)
            failed = self._run(builder.inttoptr(entries, POINTER), runs, table, memory)
            code.require(builder.icmp_unsigned("==", failed, code.word(0)), self._none)
        self._release(builder)
        builder.ret(builder.load(self._results, typ=POINTER))
        self._end_without()

    def _end_without(self) -> None:
        """Emit the ending that gives none, and lets go of what was made."""
        builder = ir.IRBuilder(self._none)
        self._release(builder)
        results = builder.load(self._results, typ=POINTER)
        with builder.if_then(builder.icmp_unsigned("!=", results, _NULL)):
            call(builder, "Py_DecRef", VOID, [results])
        give(builder, None)

    def _release(self, builder: ir.IRBuilder) -> None:
        """Emit the end of memory that there is only in the call."""
        holder = builder.load(self._memory, typ=POINTER)
        with builder.if_then(builder.icmp_unsigned("!=", holder, _NULL)):
            call_at(builder, self._torch.release, _STATUS, [holder])

    def _pair(self, pairs: Any, index: Any) -> tuple[Any, Any]:
        """Emit the loads of two words."""
        first = self._code.product(index, 2)
        one, other = (
            self._code.load_word(pairs, self._code.sum(first, n)) for n in (0, 1)
        )
        return one, other

    def _make_results(self, made: Any, first: Any, table: Any) -> Any:
        """Fill a list with new tensors; return the address behind their words."""
        code, builder = self._code, self._code.builder
        failed = builder.function.append_basic_block("failed")
        results = call(builder, "PyList_New", POINTER, [made])
        builder.store(results, self._results)
        code.require(builder.icmp_unsigned("!=", results, _NULL), failed)
        at = code.variable(first)
        handle = code.variable(code.word(0))
        with code.loop(0, made) as index:
            words = builder.load(at, typ=POINTER)
            place, dims, dtype = (code.load_word(words, n) for n in range(RESULT_HEAD))
            sizes = code.word_at(words, RESULT_HEAD)
            strides = code.word_at(words, code.sum(dims, RESULT_HEAD))
            builder.store(code.word_at(strides, dims), at)
            is_made = self._is_made(dims, sizes, strides, dtype, handle)
            code.require(is_made, self._none)
            holder = builder.load(handle, typ=POINTER)
            tensor = self._torch_call(self._torch.wrap, POINTER, [holder])
            self._torch_call(self._torch.release, _STATUS, [holder])
            code.require(builder.icmp_unsigned("!=", tensor, _NULL), failed)
            call(builder, "PyList_SetItem", _STATUS, [results, index, tensor])
            code.require(self._is_written(tensor, table, place), self._none)
        # An error of Python is set: it is raised.
        ending = ir.IRBuilder(failed)
        results = ending.load(self._results, typ=POINTER)
        with ending.if_then(ending.icmp_unsigned("!=", results, _NULL)):
            call(ending, "Py_DecRef", VOID, [results])
        ending.ret(_NULL)
        return builder.load(at, typ=POINTER)

    def _make_memory(self, dtype: Any, floats: Any) -> Any:
        """Emit the making of memory for the call; return its address, 0 for none."""
        code, builder = self._code, self._code.builder
        start = code.variable(code.word(0))
        with builder.if_then(builder.icmp_unsigned("!=", floats, code.word(0))):
            size, stride = code.variable(floats), code.variable(code.word(1))
            one = code.word(1)
            is_made = self._is_made(one, size, stride, dtype, self._memory)
            code.require(is_made, self._none)
            holder = builder.load(self._memory, typ=POINTER)
            code.require(self._is_address(holder, start), self._none)
        return builder.load(start, typ=WORD)

    def _is_made(
        self, dims: Any, sizes: Any, strides: Any, dtype: Any, handle: Any
    ) -> Any:
        """Emit the making of a tensor; return whether torch has made it."""
        builder = self._code.builder
        number = builder.trunc(dtype, _STATUS)
        kind, index = (ir.Constant(_STATUS, n) for n in (self._torch.device, 0))
        given = [dims, sizes, strides, number, kind, index, handle]
        return self._is_done(self._torch_call(self._torch.empty, _STATUS, given))

    def _is_written(self, tensor: Any, table: Any, place: Any) -> Any:
        """Emit the writing of an address; return whether the tensor has one."""
        holder = self._code.byte_at(tensor, self._torch.holder)
        return self._is_address(holder, self._code.word_at(table, place))

    def _is_address(self, holder: Any, slot: Any) -> Any:
        """Emit the writing of the address of what a holder holds."""
        given = [holder, slot]
        return self._is_done(self._torch_call(self._torch.address_of, _STATUS, given))

    def _is_done(self, status: Any) -> Any:
        return self._code.builder.icmp_unsigned("==", status, ir.Constant(_STATUS, 0))

    def _run(self, entries: Any, runs: Any, table: Any, memory: Any) -> Any:
        """Emit all runs, without the lock of the interpreter; return what failed."""
        code, builder = self._code, self._code.builder
        failed = code.variable(code.word(0))
        state = call(builder, "PyEval_SaveThread", POINTER, [])
        with code.loop(0, runs) as index:
            before = builder.load(failed, typ=WORD)
            # Kernels read by indices that a check has let pass.
            with builder.if_then(builder.icmp_unsigned("==", before, code.word(0))):
                first = code.product(index, len(Run._fields))
                entry = code.word_at(entries, first)
                self._run_one(entry, table, memory, failed)
        call(builder, "PyEval_RestoreThread", VOID, [state])
        return builder.load(failed, typ=WORD)

    def _run_one(self, entry: Any, table: Any, memory: Any, failed: Any) -> None:
        code, builder = self._code, self._code.builder
        kind, function, words, count = (
            code.load_word(entry, n) for n in range(len(Run._fields))
        )
        given = builder.inttoptr(words, POINTER)
        kernel, check, step = (
            builder.append_basic_block(one.name.lower()) for one in Kind
        )
        done = builder.append_basic_block("done")
        switch = builder.switch(kind, step)
        for block, number in ((kernel, Kind.KERNEL), (check, Kind.CHECK)):
            switch.add_case(code.word(int(number)), block)
        with builder.goto_block(kernel):
            _call_word(builder, function, VOID, [table])
            builder.branch(done)
        with builder.goto_block(check):
            found = _call_word(builder, function, WORD, [given, count, table])
            builder.store(found, failed)
            builder.branch(done)
        with builder.goto_block(step):
            _call_word(builder, function, VOID, [table, given, memory])
            builder.branch(done)
        builder.position_at_end(done)

    def _torch_call(self, address: int, result: Any, arguments: Sequence[Any]) -> Any:
        return call_at(self._code.builder, address, result, arguments)


def _call_word(
    builder: ir.IRBuilder, function: Any, result: Any, arguments: Sequence[Any]
) -> Any:
    """Emit a call of the function whose address is a word."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), arguments)
