"""Owns loads of some lanes of a vector; the memory of the others is not read."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from magweld.codegen.emitter import BYTE, FLOAT, INT, POINTER, Emitter

_BIT: Final = ir.IntType(1)
# Bytes of an element, and its letters in names of LLVM's functions.
_NAMES: Final = {FLOAT: (4, "f32"), BYTE: (1, "i8")}


def load_some(code: Emitter, address: Any, is_loaded: Any, kind: ir.Type) -> Any:
    """Load some lanes; others are zero.

    Args:
        code: Emits.
        address: Of the first lane.
        is_loaded: The lanes, as bits.
        kind: Of an element: floats, or bytes.
    """
    module = code.builder.module
    vector = ir.VectorType(kind, code.lanes)
    size, letters = _NAMES[kind]
    name = f"llvm.masked.load.v{code.lanes}{letters}.p0"
    function = module.globals.get(name)
    if function is None:
        lanes = ir.VectorType(_BIT, code.lanes)
        given = [POINTER, INT, lanes, vector]
        function = ir.Function(module, ir.FunctionType(vector, given), name)
    alignment = ir.Constant(INT, size)
    arguments = [address, alignment, is_loaded, ir.Constant(vector, None)]
    return code.builder.call(function, arguments)
