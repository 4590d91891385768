"""Owns functions of Python that are native code of this process.

A call of one takes 30 ns; one by `ctypes` takes 200, and more for each argument.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir

from magweld.codegen.emitter import POINTER, VOID, WORD
from magweld.codegen.host import HostTarget
from magweld.codegen.loader import LoadedObjects

# Flags of Include/methodobject.h: it takes an array and its length, one object or null.
TAKES_MANY: Final = 0x80
TAKES_ONE: Final = 0x08
TAKES_NONE: Final = 0x04


class _Definition(ctypes.Structure):
    """`PyMethodDef` of Include/methodobject.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


class NativeFunction:
    """Native code that functions of Python are made of, each with data of its own.

    It is never let go: at the end of a process objects go in any order.

    Args:
        name: What the functions are called; also the symbol.
        module: Where it is defined: it takes the data, as an object of `bytes`, then
            what the flag says, and gives an object.
        flag: `TAKES_MANY`, `TAKES_ONE` or `TAKES_NONE`.
    """

    def __init__(self, name: str, module: ir.Module, flag: int) -> None:
        # Little of it is worth a pass, and they take longer than all else here.
        parsed = llvm.parse_assembly(str(module))
        code = bytes(HostTarget.detect().machine().emit_object(parsed))
        self._code = LoadedObjects([code], [name])
        address = self._code.address(name)
        self._definition = _Definition(name.encode(), address, flag, None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        self._make: Any = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
        )(("PyCFunction_NewEx", ctypes.pythonapi))

    def on(self, words: Sequence[int]) -> Callable[..., Any]:
        """Return a function with some words as its data."""
        data = bytes((ctypes.c_uint64 * len(words))(*words))
        definition = ctypes.addressof(self._definition)
        function: Callable[..., Any] = self._make(definition, data, None)
        return function


def call(
    builder: ir.IRBuilder, name: str, result: Any, arguments: Sequence[Any]
) -> Any:
    """Emit a call of a function of Python's interface in C, where it is now."""
    found = getattr(ctypes.pythonapi, name)
    address = ctypes.cast(found, ctypes.c_void_p).value or 0
    return call_at(builder, address, result, arguments)


def call_at(
    builder: ir.IRBuilder, address: int, result: Any, arguments: Sequence[Any]
) -> Any:
    """Emit a call of the function that is at an address."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = builder.inttoptr(ir.Constant(WORD, address), kind.as_pointer())
    return builder.call(function, arguments)


def give(builder: ir.IRBuilder, constant: bool | None) -> None:
    """Emit the return of an object that there always is."""
    found = builder.inttoptr(ir.Constant(WORD, id(constant)), POINTER)
    call(builder, "Py_IncRef", VOID, [found])
    builder.ret(found)
