"""Owns the writing of many tensors' addresses to memory, by one call of native code.

To ask a tensor in Python takes 60 ns, of native code 10: a program of a hundred small
operators has some hundred inputs and results. Torch's C interface gives the address of
a tensor that is handed over as C++ holds it; where a Python tensor holds that is no
part of an interface, and is found out by looking.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

from llvmlite import ir
from torch import Tensor

from magweld.runtime.machine import WriteAddresses
from magweld.runtime.torch_library import CPU_LIBRARY, torch_address
from magweld.tensor_words import tensor_holder

WRITER_SYMBOL = "magweld_write_addresses"
_WORD, _POINTER, _BYTE = ir.IntType(64), ir.PointerType(), ir.IntType(8)
_STATUS = ir.IntType(32)
_ASKED = "aoti_torch_get_data_ptr"
# It works on Python's objects, so it keeps the lock of the interpreter.
_TYPE = ctypes.PYFUNCTYPE(
    ctypes.c_int64, ctypes.py_object, ctypes.c_void_p, *[ctypes.c_int64] * 4
)


class _Interface(NamedTuple):
    """How native code reads a tensor in a list.

    Attributes:
        holder: Where in a Python tensor the pointer is that C++ calls a tensor.
        item: Address of Python's function that gives an element of a list.
        asked: Address of torch's function that gives the address of a tensor.
    """

    holder: int
    item: int
    asked: int


def address_writer(function: int) -> WriteAddresses | None:
    """Return what writes addresses; None if torch does not let native code read them.

    Args:
        function: Address of what `define_writer` has defined; it outlives the result.
    """
    interface = _interface()
    if interface is None:
        return None
    run = _TYPE(function)

    def write(tensors: list[Tensor], table: int) -> None:
        if run(tensors, table, len(tensors), *interface):
            raise RuntimeError("a tensor has no memory")

    return write


@cache
def _interface() -> _Interface | None:
    holder, asked = tensor_holder(), torch_address(CPU_LIBRARY, _ASKED)
    item = ctypes.cast(ctypes.pythonapi.PyList_GetItem, ctypes.c_void_p).value
    return _Interface(holder, item, asked) if holder and asked and item else None


def define_writer(module: ir.Module) -> None:
    """Define `int64_t f(list, int64_t* table, count, holder, item, asked)`.

    It returns how many tensors were left when one gave no address, 0 if all gave one.
    """
    kinds = [_POINTER, _POINTER, *[_WORD] * 4]
    function = ir.Function(module, ir.FunctionType(_WORD, kinds), WRITER_SYMBOL)
    tensors, table, count, holder, item, asked = function.args
    blocks = map(function.append_basic_block, ("entry", "head", "body", "done"))
    entry, head, body, done = blocks
    ir.IRBuilder(entry).branch(head)
    builder = ir.IRBuilder(head)
    index = builder.phi(_WORD)
    index.add_incoming(ir.Constant(_WORD, 0), entry)
    builder.cbranch(builder.icmp_unsigned("<", index, count), body, done)
    builder.position_at_end(body)
    get = ir.FunctionType(_POINTER, [_POINTER, _WORD]).as_pointer()
    tensor = builder.call(builder.inttoptr(item, get), [tensors, index])
    ask = ir.FunctionType(_STATUS, [_POINTER, _POINTER]).as_pointer()
    held = builder.gep(tensor, [holder], source_etype=_BYTE)
    slot = builder.gep(table, [index], source_etype=_WORD)
    status = builder.call(builder.inttoptr(asked, ask), [held, slot])
    index.add_incoming(builder.add(index, ir.Constant(_WORD, 1)), body)
    is_good = builder.icmp_unsigned("==", status, ir.Constant(_STATUS, 0))
    builder.cbranch(is_good, head, done)
    builder.position_at_end(done)
    builder.ret(builder.sub(count, index))
