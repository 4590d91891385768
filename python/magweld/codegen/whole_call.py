"""Owns the native code of a call: addresses of tensors, new tensors, kernels.

Torch's interface for C makes tensors and gives addresses; one function beside it gives
a new tensor its object in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from llvmlite import ir

from magweld.codegen.emitter import POINTER, VOID, WORD, Emitter
from magweld.codegen.python_functions import call, call_at, give

NAME: Final = "start_call"
_STATUS: Final = ir.IntType(32)
# Words of the data before those of arguments.
_HEAD: Final = 6
# Words of a result before its sizes: its place, its dimensions, its type.
_RESULT_HEAD: Final = 3


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


class NewTensor(NamedTuple):
    """A result that is made in a call.

    Attributes:
        place: Where in the table its address goes.
        dtype: The number of its type.
        shape: Its extents.
        stride: Its strides.
    """

    place: int
    dtype: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def call_data(
    table: int,
    arguments: Sequence[int],
    results: Sequence[NewTensor],
    copies: Sequence[tuple[int, int]],
    launches: tuple[int, int],
) -> list[int]:
    """Return the data of a function that begins or does a call.

    Args:
        table: Where addresses go.
        arguments: Where in it those of arguments go.
        results: What is made.
        copies: From where to where in it addresses are copied then.
        launches: Where addresses of kernels are that run then, and how many.
    """
    counts = len(arguments), len(results), len(copies)
    data = [table, *launches, *counts, *arguments]
    for result in results:
        data += [result.place, len(result.shape), result.dtype]
        data += [*result.shape, *result.stride]
    return [*data, *(place for copy in copies for place in copy)]


def define_call(module: ir.Module, torch: TorchCalls) -> None:
    """Define the function, which takes a list of arguments and gives one of results.

    It gives `None` where torch refuses something: then nothing has run.
    """
    kind = ir.FunctionType(POINTER, [POINTER, POINTER])
    _Call(ir.Function(module, kind, NAME), torch).emit()


class _Call:
    def __init__(self, function: ir.Function, torch: TorchCalls) -> None:
        self._code = Emitter(function, 1)
        self._torch = torch
        self._none = function.append_basic_block("none")

    def emit(self) -> None:
        """Emit the body."""
        code, builder = self._code, self._code.builder
        held, arguments = code.arguments
        data = call(builder, "PyBytes_AsString", POINTER, [held])
        words = [code.load_word(data, number) for number in range(_HEAD)]
        address, launches, kernels, given, made, copied = words
        table = builder.inttoptr(address, POINTER)
        size = call(builder, "PyList_Size", WORD, [arguments])
        code.require(builder.icmp_unsigned("==", size, given), self._none)
        with code.loop(0, given) as index:
            item = call(builder, "PyList_GetItem", POINTER, [arguments, index])
            place = code.load_word(data, code.sum(index, _HEAD))
            code.require(self._is_written(item, table, place), self._none)
        results = call(builder, "PyList_New", POINTER, [made])
        rest = code.word_at(data, code.sum(given, _HEAD))
        rest = self._make_results(results, made, rest, table)
        with code.loop(0, copied) as index:
            first = code.product(index, 2)
            source, target = (code.load_word(rest, code.sum(first, n)) for n in (0, 1))
            builder.store(code.load_word(table, source), code.word_at(table, target))
        with builder.if_then(builder.icmp_unsigned("!=", kernels, code.word(0))):
            self._launch(builder.inttoptr(launches, POINTER), kernels, table)
        builder.ret(results)
        give(ir.IRBuilder(self._none), None)

    def _make_results(self, results: Any, made: Any, first: Any, table: Any) -> Any:
        """Fill a list with new tensors; return the address behind their words."""
        code, builder = self._code, self._code.builder
        function = builder.function
        refused, failed = map(function.append_basic_block, ("refused", "failed"))
        none = ir.Constant(POINTER, None)
        code.require(builder.icmp_unsigned("!=", results, none), failed)
        at = code.variable(first)
        handle = code.variable(code.word(0))
        with code.loop(0, made) as index:
            words = builder.load(at, typ=POINTER)
            place, dims, dtype = (code.load_word(words, n) for n in range(_RESULT_HEAD))
            sizes = code.word_at(words, _RESULT_HEAD)
            strides = code.word_at(words, code.sum(dims, _RESULT_HEAD))
            builder.store(code.word_at(strides, dims), at)
            code.require(self._is_made(dims, sizes, strides, dtype, handle), refused)
            holder = builder.load(handle, typ=POINTER)
            tensor = self._torch_call(self._torch.wrap, POINTER, [holder])
            self._torch_call(self._torch.release, _STATUS, [holder])
            is_there = builder.icmp_unsigned("!=", tensor, none)
            code.require(is_there, failed)
            call(builder, "PyList_SetItem", _STATUS, [results, index, tensor])
            code.require(self._is_written(tensor, table, place), refused)
        ending = ir.IRBuilder(refused)
        call(ending, "Py_DecRef", VOID, [results])
        ending.branch(self._none)
        ending = ir.IRBuilder(failed)
        call(ending, "Py_DecRef", VOID, [results])
        ending.ret(none)
        return builder.load(at, typ=POINTER)

    def _is_made(
        self, dims: Any, sizes: Any, strides: Any, dtype: Any, handle: Any
    ) -> Any:
        """Emit the making of a tensor; return whether torch has made it."""
        builder = self._code.builder
        number = builder.trunc(dtype, _STATUS)
        kind, index = (ir.Constant(_STATUS, n) for n in (self._torch.device, 0))
        given = [dims, sizes, strides, number, kind, index, handle]
        status = self._torch_call(self._torch.empty, _STATUS, given)
        return builder.icmp_unsigned("==", status, ir.Constant(_STATUS, 0))

    def _is_written(self, tensor: Any, table: Any, place: Any) -> Any:
        """Emit the writing of an address; return whether the tensor has one."""
        builder = self._code.builder
        holder = self._code.byte_at(tensor, self._torch.holder)
        slot = self._code.word_at(table, place)
        status = self._torch_call(self._torch.address_of, _STATUS, [holder, slot])
        return builder.icmp_unsigned("==", status, ir.Constant(_STATUS, 0))

    def _launch(self, launches: Any, kernels: Any, table: Any) -> None:
        """Emit the run of kernels, without the lock of the interpreter."""
        builder = self._code.builder
        state = call(builder, "PyEval_SaveThread", POINTER, [])
        kind = ir.FunctionType(VOID, [POINTER]).as_pointer()
        with self._code.loop(0, kernels) as index:
            slot = builder.gep(launches, [index], source_etype=POINTER)
            builder.call(builder.load(slot, typ=kind), [table])
        call(builder, "PyEval_RestoreThread", VOID, [state])

    def _torch_call(self, address: int, result: Any, arguments: Sequence[Any]) -> Any:
        return call_at(self._code.builder, address, result, arguments)
